"""Scores answers of an index, or answers that were given already: `kraq eval INDEX QUESTIONS`, `kraq eval FILE`."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kraq_dspy.apps.cli.model_options import Reads, TakesStates
from kraq_dspy.apps.cli.options import DataDir, Flag, Human, IndexDir, Json, Questions, Repeated, Seed, command_class
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.scoring import ScoresQuestions
from kraq_dspy.apps.cli.terminal import counted, note, output, print_json, say
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.datasets import NAMES, fetch_dataset, load_dataset
from kraq_dspy.eval.datasets.dataset import checksum_of, is_dataset
from kraq_dspy.eval.evaluation import RETRIEVED, default_metrics, evaluate, place_of
from kraq_dspy.eval.foreign import read_foreign
from kraq_dspy.eval.judges import JUDGED
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.questions import columns_note, read_questions
from kraq_dspy.eval.reports.comparing import compare_runs
from kraq_dspy.eval.reports.grids import changed_questions, grids, unpaired_questions
from kraq_dspy.eval.reports.page import write_report
from kraq_dspy.eval.reports.summary import TableSummary, find_runs, summarise
from kraq_dspy.eval.reports.terminal import print_grid, print_summary
from kraq_dspy.eval.system import AskedSystem, chosen_program, chosen_retriever, system_of
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.listing import paper_grids
from kraq_dspy.records import content_id
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program, passages_option

Baseline = Annotated[str | None, Option("--baseline", help="The system that the others are compared with.")]


def named_scorer(name: str) -> BertScorer:
    if name == "minilm":
        return BertScorer.packaged()
    folder, _, layer = name.rpartition(":")
    if folder and layer.isdecimal():
        return BertScorer(folder, int(layer))
    return BertScorer(name)


@command_class
class EvalIndex(TakesStates, Reads, ScoresQuestions):
    """Ask an index every question of a file, and score answers and evidence.

    Without --metric, kraq computes those for which the questions have gold data; without answers in the file, only
    those that need none. `kraq eval report A B` compares two
    of these runs.
    """

    index_dir: IndexDir
    questions: Questions
    program: Annotated[
        Repeated,
        Option("--program", "-p", help="Program, as in kraq ask; repeatable. Default: kraq ask's."),
    ] = None
    retriever: Annotated[
        Repeated,
        Option("--retriever", "-r", help="Retriever of each program; repeatable. Default: kraq ask's."),
    ] = None
    retrieval_only: Annotated[
        bool, Flag("--retrieval-only", help="Score what the retrievers find, without answers.")
    ] = False
    k: Annotated[
        int | None,
        Option("--k", "-k", min=1, help=f"Passages for each question. Default: a program's own, or {RETRIEVED}."),
    ] = None
    system: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="TOML file of a system elsewhere (url, mcp or command); repeatable. INDEX has the gold passages.",
        ),
    ] = None
    human: Human = None

    def run(self) -> None:
        thresholds = self.thresholds()
        examples = self.examples(self.questions)
        if told := columns_note(examples, self.columns()):
            note(told, label="")
        human = [] if self.human is None else read_questions(self.human, self.columns(), encoding=self.encoding)
        if self.retrieval_only and (self.program or self.optimized):
            raise ConfigError("--retrieval-only asks no program.")

        with self.opened(self.index_dir) as space:
            settings = space.models.settings
            systems = self._systems(space)
            metrics = self.metric or None
            if thresholds:
                metrics = self.with_judged(metrics or default_metrics(systems, examples, self.asked_k), thresholds)
            self._require_optimized(space, systems, metrics or ())
            title = f"{self.index_dir.resolve().stem}-{self.questions.name.partition('.')[0]}"
            folder = self.out or place_of(title, systems, metrics, [*examples, *human], space, Path("runs"))
            self.prepare_place(folder)
            named = {system.name: system for system in systems}
            with Bars(settings, quiet=self.json) as bars:
                result = evaluate(
                    named, examples, metrics, human=human or None, space=space, title=title, k=self.asked_k,
                    out=folder, concurrency=settings.run.concurrency, seed=self.seed, progress=bars,
                )  # fmt: skip

        self.show_and_judge(result, folder, thresholds)

    def _require_optimized(self, space: Workspace, systems: Sequence[AskedSystem], metrics: Sequence[str]) -> None:
        """Raises ConfigError for an optimized program that no system and no judge asks."""
        if self.optimized:
            programs = [space.make_program(each.choice) for each in systems if each.choice is not None]
            judges = [JUDGED[name]() for name in metrics if name in JUDGED]
            self.require_asked("eval", programs=[*programs, *judges])

    @property
    def asked_k(self) -> int:
        """How many passages a retriever is asked for."""
        return self.k or RETRIEVED

    def _systems(self, space: Workspace) -> list[AskedSystem]:
        """The systems elsewhere, then the retrievers, or each program over each retriever; those of `kraq ask` if none
        is named."""

        foreign = [system_of(read_foreign(file), file.name.partition(".")[0]) for file in self.system or ()]
        if foreign and not (self.program or self.retriever):
            return foreign
        return foreign + self._own_systems(space)

    def _own_systems(self, space: Workspace) -> list[AskedSystem]:
        if self.retrieval_only:
            names = self.retriever or [space.default_retriever]
            return [chosen_retriever(space, name, self.asked_k) for name in names]

        systems = []
        retrievers: Sequence[str | None] = self.retriever or [None]
        for program, retriever in product(self.program or [DEFAULT_PROGRAM], retrievers):
            options = {} if self.k is None else {passages_option(program, {}): self.k}
            choice = choose_program(program, retriever, options, measured=True)
            label = choice.spec.name if retriever is None else f"{choice.spec.name} over {retriever}"
            systems.append(chosen_program(space, choice, label, self.optimized or ()))
        return systems


@command_class
class EvalRecorded(ScoresQuestions):
    """Score the answers of a file, which were given already.

    kraq compares them with the file's right answers and passages. Columns are those of RAGAS (response,
    retrieved_contexts), DeepEval (actual_output, retrieval_context) or TruLens (output, contexts). kraq asks no
    system; only metrics such as groundedness ask a model.
    """

    file: Annotated[
        Path, Argument(metavar="FILE", help="csv, jsonl or parquet: questions with the answers that were given.")
    ]

    def run(self) -> None:
        thresholds = self.thresholds()
        settings = self.settings()
        examples = self.examples(self.file)
        recorded = system_of(None, examples=examples)
        metrics = self.with_judged(self.metric or default_metrics([recorded], examples, 0), thresholds)
        title = self.file.name.partition(".")[0]
        parts = content_id("place", *metrics, checksum_of(examples))[:8]
        folder = self.out or Path("runs") / f"{title}-{parts}"
        self.prepare_place(folder)

        models = LanguageModels(settings, meter=Meter(self.limits(settings)))
        judge = models["judge"] if any(name in JUDGED for name in metrics) else None
        with Bars(settings, quiet=self.json) as bars:
            result = evaluate(
                None, examples, metrics, judge=judge, title=title, out=folder,
                concurrency=settings.run.concurrency, seed=self.seed, progress=bars,
            )  # fmt: skip
        self.show_and_judge(result, folder, thresholds)


@command_class
class Report:
    """Make the report of `kraq eval` again from its rows.

    It prints to the terminal and writes report.html. With two folders, compare the runs: what the second has more,
    question by question, with intervals.
    """

    run_dir: Annotated[Path, Argument(metavar="DIR", help="The folder that `kraq eval` wrote.")]
    other: Annotated[
        Path | None, Argument(metavar="OTHER", help="Another run on the same questions, to compare it with.")
    ] = None
    baseline: Baseline = None
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.other is None:
            make_report(self.run_dir, self.baseline, self.seed, json=self.json)
            return
        if self.baseline is not None:
            raise ConfigError(
                "--baseline is for the report of one run; of two, the first is what the second is compared with."
            )

        comparisons = compare_runs(self.run_dir, self.other, seed=self.seed)
        if self.json:
            title = f"{self.run_dir} and {self.other}"
            runs = [run.to_dict() for run in comparisons]
            print_json({"title": title, "kind": "comparison", "runs": runs, "files": [], "checks": []})
            return
        for run in comparisons:
            say((f"\n{run.header.dataset}", "bold"))
            for part in (*grids(run, brief=True), changed_questions(run), unpaired_questions(run)):
                if part is not None:
                    print_grid(part, output)


def make_report(folder: Path, baseline: str | None, seed: int, *, json: bool) -> TableSummary:
    """Write and print the report; the summary that it shows."""

    summary = summarise(find_runs(folder), baseline=baseline, seed=seed)
    in_front = paper_grids(summary)
    files = write_report(summary, folder, in_front=in_front)
    if json:
        print_json({**summary.to_dict(), "files": [str(file) for file in files], "checks": []})
        return summary
    print_summary(summary, output, in_front=in_front)
    say(f"Report: {', '.join(map(str, files))}")
    return summary


@command_class
class ListData:
    """Name the data sets that can be fetched, and those that are here."""

    data: DataDir = Path("data")
    json: Json = False

    def run(self) -> None:
        folders = self.data.iterdir() if self.data.is_dir() else []
        here = sorted(path.name for path in folders if is_dataset(path) or path.name in NAMES)
        if self.json:
            print_json({"can_be_fetched": list(NAMES), "here": here})
            return
        for name in sorted({*NAMES, *here}):
            say(f"{name:16}", f" in {self.data}" if name in here else "")


@command_class
class FetchData:
    """Download a data set from the hub, or take BioASQ's files over.

    kraq keeps existing files.
    """

    name: Annotated[str, Argument(metavar="NAME", help="One of `kraq bench data`.")]
    out: Annotated[
        Path, Option("--out", "-o", metavar="DIR", help="Folder for data sets; this one gets a folder in it.")
    ] = Path("data")
    file: Annotated[list[Path] | None, Option(help="BioASQ's golden files; may be repeated.")] = None

    def run(self) -> None:
        fetch_dataset(self.name, self.out, files=self.file or [])
        dataset = load_dataset(self.name, self.out)
        say(
            f"{self.out / self.name}: {counted(len(dataset.examples), 'question')}, "
            f"{counted(len(dataset.documents), 'document')}"
        )
