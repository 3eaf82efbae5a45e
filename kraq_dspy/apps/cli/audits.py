"""Measures the papers' claims that are not about answers: diversity, bias, K2RAG's stores, QA-RAG's
pairs.

The last two stand for tables that no run of programs over questions makes.
"""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from kraq_dspy.apps.cli.model_options import Calls, Columns, QuestionFile, Reads
from kraq_dspy.apps.cli.options import (
    Corpus,
    First,
    Flag,
    IndexDir,
    Json,
    Questions,
    Repeated,
    Scoped,
    Seed,
    command_class,
    require_writable_file,
)
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, grid, note, output, print_json, say, short
from kraq_dspy.errors import ConfigError, counted
from kraq_dspy.eval.evaluation import RETRIEVED
from kraq_dspy.eval.questions import read_questions
from kraq_dspy.eval.reports.grids import grids
from kraq_dspy.eval.reports.terminal import print_grid
from kraq_dspy.indexing.index.opening import documents_of
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.audits.bias import ThemeShare, audit_bias
from kraq_dspy.papers.audits.diversity import measure_diversity
from kraq_dspy.papers.audits.raters_sheet import RATED_PASSAGES, rate_by_model, read_sheet, score_sheet, write_sheet
from kraq_dspy.papers.audits.stores import measure_stores
from kraq_dspy.records import Chunk, Document

SHOWN = 15
"""Themes on the terminal."""
BESIDE_THE_THEME = 50
"""Characters of a row of themes beside the theme's name."""


@command_class
class Diversity(Reads, QuestionFile):
    """Measure how diverse the passages of retrievers are.

    It also counts from how many communities they come, as the KRAQ paper claims. The command calls no model.
    """

    index_dir: IndexDir
    questions: Questions
    retriever: Annotated[
        Repeated,
        Option("--retriever", "-r", help="May be repeated; the first is the baseline. Default: dense, combined."),
    ] = None
    k: Annotated[int, Option("--k", "-k", min=2, help="Passages for each question.")] = RETRIEVED
    level: Annotated[int, Option("--level", min=0, help="Level of the communities; 0 is the broadest.")] = 0
    limit: First = None
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        names = list(dict.fromkeys(self.retriever or ["dense", "combined"]))
        examples = read_questions(self.questions, self.columns())[: self.limit]
        with self.opened(self.index_dir) as space, Bars(space.models.settings, quiet=self.json) as bars:
            retrievers = {name: space.retriever(name) for name in names}
            evaluation = measure_diversity(
                space, retrievers, examples, k=self.k, level=self.level, seed=self.seed, progress=bars
            )
        if self.json:
            print_json(evaluation.to_dict())
            return
        for part in grids(evaluation.summary, brief=True):
            print_grid(part, output)
        say("Less cosine is more diverse.")


@command_class
class Bias(Scoped):
    """Compare each theme's share of the questions and of the passages.

    The questions follow a corpus's dominant themes by design (KRAQ paper, Ethical Considerations). The distance is
    the share of questions that would have to change their theme.
    """

    index_dir: IndexDir
    by: Annotated[
        str | None,
        Option("--by", metavar="FIELD", help="Themes are the values of this metadata of the documents."),
    ] = None
    level: Annotated[int, Option("--level", min=0, help="Themes are the communities of this level.")] = 0
    source: Annotated[Literal["kraq", "random"], Option(help="Questions: kraq, or random (the baseline).")] = "kraq"
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.by is not None and self.level:
            raise ConfigError("Themes are communities of a level or values of a field: --level or --by, not both.")
        with self.readable(self.index_dir) as index:
            audit = audit_bias(index, by=self.by, level=self.level, source=self.source, seed=self.seed)
        if self.json:
            print_json(audit)
            return

        numbers = ("passages", "questions", "by chance", "ratio")
        rows = [_theme_row(theme) for theme in audit.themes[:SHOWN]]
        title = f"{counted(audit.n_questions, 'question')}, {counted(audit.n_passages, 'passage')}"
        output.print(grid(title, ["theme", *numbers, ""], rows, right=numbers))
        if len(audit.themes) > SHOWN:
            say(f"and {counted(len(audit.themes) - SHOWN, 'more theme')}: --json", style="dim")
        say(f"Distance {audit.distance:.3f}; {audit.chance:.3f} by chance alone, p = {audit.p_value:.4f}.")
        if audit.left_out:
            say(f"Left out, being broader than level {self.level}: {audit.left_out:,} of the questions.")


def _theme_row(theme: ThemeShare) -> tuple[Any, ...]:
    low, high = theme.chance
    ratio = "" if theme.ratio is None else f"{theme.ratio:.2f}"
    mark = ""
    if theme.p_adjusted < 0.05:
        mark = "too many" if theme.questions > theme.passages else "too few"
    name = short(theme.theme, max(16, output.width - BESIDE_THE_THEME))
    return name, f"{theme.passages:.1%}", f"{theme.questions:.1%}", f"{low:.1%}-{high:.1%}", ratio, mark


@command_class
class Stores(Calls, Columns):
    """Time K2RAG's stores of CORPUS as it is and summarised first.

    This is its paper's table 1, figures 11 and 12. The command makes every store again, in a temporary folder, so
    it calls models for both corpora.
    """

    corpus: Corpus
    limit: First = None
    json: Json = False

    def run(self) -> None:
        settings = self.settings()
        embedder = load_embedder(settings.encoder)
        readable_documents = (item for item in documents_of(self.corpus, settings) if isinstance(item, Document))
        documents = list(islice(readable_documents, self.limit))
        with Bars(settings, quiet=self.json) as bars:
            report = measure_stores(documents, LanguageModels(settings, embedder=embedder), embedder, bars)
        if self.json:
            print_json(report)
            return

        rows = []
        for store in ("dense", "sparse", "graph"):
            before, after = getattr(report.whole, store), getattr(report.summarised, store)
            rows.append((store, f"{before:.2f}", f"{after:.2f}", f"{report.saved[store]:.0%}"))
        numbers = ("whole, s", "summarised, s", "saved")
        title = f"Stores of {counted(report.documents, 'document')}: {report.whole.tokens:,} tokens, summarised "
        output.print(grid(f"{title}{report.summarised.tokens:,}", ["store", *numbers], rows, right=numbers))
        least, first, median, third, most = (f"{value:.0%}" for value in report.reductions)
        say(f"Summarising took {report.summarising:.2f} s. Documents became smaller by {report.mean_reduction:.0%} on")
        say(f"average: {least} at least, {first} first quartile, {median} median, {third} third, {most} at most.")


@command_class
class RatersSheet(Reads):
    """Make QA-RAG's table 1: how often question-answer pairs are good.

    That is at once (hits@1), and within four tries (hits@<5). People judge: the first run writes SHEET, a csv file,
    with the pairs of 20 passages of the index --index DIR. Fill its column `good` with yes or no, and the same
    command without --index scores it. --stand-in lets the model of the role judge fill what is empty, and says that
    it did.
    """

    sheet: Annotated[Path, Argument(metavar="SHEET", help="The csv file to write, or to score.")]
    index: Annotated[Path | None, Option(metavar="DIR", help="Write the sheet of this index's passages.")] = None
    passages: Annotated[int, Option(min=2, help="Passages on the sheet.")] = RATED_PASSAGES
    tries: Annotated[int, Option(min=1, help="Tries at each passage.")] = 4
    stand_in: Annotated[bool, Flag("--stand-in", help="Let a model fill what people have not judged.")] = False
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.index is not None:
            require_writable_file(self.sheet)
            with self.opened(self.index) as space, Bars(space.models.settings, quiet=self.json) as bars:
                chunks = list(space.index.all(Chunk))
                rows = write_sheet(
                    chunks,
                    space.models,
                    self.sheet,
                    passages=self.passages,
                    tries=self.tries,
                    seed=self.seed,
                    progress=bars,
                )
            if not self.stand_in:
                say(f"{self.sheet}: {counted(len(rows), 'try')} to judge. Fill the column good with yes or no, then:")
                say(command("bench", "qa-rag-1", self.sheet))
                return

        rows = rate_by_model(self.sheet, LanguageModels(self.settings())) if self.stand_in else read_sheet(self.sheet)
        report = score_sheet(rows, seed=self.seed)
        if self.json:
            print_json({**asdict(report), "is_stand_in": report.is_stand_in})
            return
        table = [("hits@1", report.at_once.shown()), ("hits@<5", report.within_tries.shown())]
        title = f"{counted(report.n_passages, 'passage')}, rated by {', '.join(report.rated_by)}"
        output.print(grid(title, ["metric", "share of passages"], table))
        if report.is_stand_in:
            note("a model rated in place of people: it stands in for human judgement.")
        if report.left_out:
            verb = "is" if report.left_out == 1 else "are"
            note(f"{counted(report.left_out, 'passage')} {verb} not judged far enough, and {verb} left out.")
