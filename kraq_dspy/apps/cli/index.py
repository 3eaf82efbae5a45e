"""Leads from a corpus to representative questions: `kraq index` and `kraq questions`."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text
from typer import Argument, Option

from kraq_dspy.apps.cli.options import (
    Builds,
    Columns,
    Flag,
    IndexDir,
    Json,
    Limits,
    ModelOption,
    NewIndex,
    Scoped,
    Sets,
    TakesStates,
    command_class,
    with_sections,
)
from kraq_dspy.apps.cli.progress import label, run_build
from kraq_dspy.apps.cli.terminal import command, compact, counted, grid, note, output, print_json, say, short
from kraq_dspy.errors import ConfigError, RemovedDocumentsError
from kraq_dspy.records import MENTIONS

if TYPE_CHECKING:
    from kraq_dspy.indexing.index.report import BuildReport
    from kraq_dspy.records import Chunk, Question, Usage
    from kraq_dspy.settings import Settings


@command_class
class BuildIndex(TakesStates, Builds, Limits, Columns):
    """Index CORPUS: graph, communities, summaries, and a question for each community.

    Run it again to resume an interrupted run, to retry what failed, or to bring the index up to date with the corpus.
    `kraq index DIR`, with an index in place of a corpus, resumes it as it was begun.
    """

    corpus: Annotated[
        Path, Argument(help="A file or folder of txt, md, html, pdf, jsonl, csv or parquet; or an index.")
    ]
    out: NewIndex = None
    random_questions: Annotated[
        bool, Flag("--random-questions", help="Also make the papers' baseline: questions from random chunks.")
    ] = False
    replace: Annotated[bool, Flag("--replace", help="Remove documents of DIR that this corpus does not have.")] = False
    runner: Annotated[
        str | None,
        ModelOption(help="Place of model calls: local, or ray (a cluster; kraq.toml, section run)."),
        Sets("run", "runner"),
    ] = None
    redact: Annotated[
        bool,
        ModelOption(
            "--redact",
            metavar="",
            help="Strike e-mail addresses, phone and card numbers out (kraq.toml, section redact).",
        ),
    ] = False
    dry_run: Annotated[
        bool, Flag("--dry-run", help="Only estimate calls, tokens and money, stage by stage, without asking a model.")
    ] = False
    domain: Annotated[
        bool,
        Flag("--domain", help="Only ask a model what CORPUS is about: a persona and types of entities for kraq.toml."),
    ] = False
    json: Json = False

    def settings(self, base: "Settings | None" = None) -> "Settings":
        settings = super().settings(base)
        if self.redact:
            return with_sections(settings, {"redact": dict.fromkeys(("emails", "phones", "cards"), True)})
        return settings

    def run(self) -> None:
        is_index = (self.corpus / "manifest.json").is_file()
        if self.dry_run:
            self._estimate(is_index)
        elif self.domain:
            self._describe_domain()
        elif is_index:
            self._resume()
        else:
            self._build()

    def _resume(self) -> None:
        from kraq_dspy.indexing.index.change import resume_index

        if self.out or self.replace or self.random_questions or self.optimized:
            raise ConfigError(
                f"{str(self.corpus)!r} is an index, which is finished as it was begun: without --out, --replace, "
                "--random-questions and --optimized."
            )
        settings = self.settings_of(self.corpus)
        run_build(partial(resume_index, self.corpus), settings, self, json=self.json)

    def _describe_domain(self) -> None:
        from kraq_dspy.models.lms.meter import Meter
        from kraq_dspy.models.lms.roles import LanguageModels
        from kraq_dspy.optimize import describe_domain
        from kraq_dspy.settings import EMBEDDED

        self.require_asked("index --domain", "describing")
        settings = self.settings()
        if settings.role("extractor").model == EMBEDDED:
            note("the embedded model only guesses: name a model with --lm.")
        models = LanguageModels(settings, meter=Meter(self.limits(settings)), states=self.states())
        typer.echo(describe_domain(self.corpus, settings, lm=models).to_toml())

    def _estimate(self, is_index: bool) -> None:
        from kraq_dspy.indexing.index.estimate import LEAST, MOST, estimate_corpus, estimate_index

        if is_index:
            result = estimate_index(self.corpus, self.settings_of(self.corpus))
        else:
            result = estimate_corpus(self.corpus, self.settings())
        if self.json:
            print_json({"estimate": result, "expected": result.expected, "cost": result.cost})
            return

        documents, passages = counted(result.documents, "document"), counted(result.chunks, "passage")
        say(f"{self.corpus}: {documents}, {passages}, {compact(result.corpus_tokens)} tokens")
        rows = [
            (label(stage.stage), short(stage.model, 30), *_cells(stage.expected, stage.cost)) for stage in result.stages
        ]
        numbers = ("calls", "tokens in", "tokens out", "cost")
        table = grid("", ("stage", "model", *numbers), rows, right=numbers)
        table.add_section()
        table.add_row("together", "", *_cells(result.expected, result.cost), style="bold")
        output.print(table)

        first = label(result.stages[0].stage)
        say(f"Number of calls exact, save for retries: {first}. The rest is a guess: {LEAST} to {MOST} times as many.")
        if result.cost is None:
            say("For money, give the roles prompt_price and completion_price in kraq.toml, for a million tokens.")
        else:
            say("Prices are from kraq.toml, otherwise in US dollars from LiteLLM's list.")
        for problem in result.problems[:10]:
            note(short(problem, 240), label="left out: ")

    def _build(self) -> None:
        from kraq_dspy.indexing.index.build import build_index

        settings = self.settings()
        out = self.out or index_beside(self.corpus)
        build = partial(
            build_index,
            self.corpus,
            out,
            random_questions=self.random_questions,
            optimized=self.optimized or (),
        )

        try:
            report = run_build(partial(build, replace=self.replace), settings, self, json=self.json)
        except RemovedDocumentsError as error:
            if self.json or not sys.stdin.isatty():
                raise
            typer.echo(str(error), err=True)
            if not typer.confirm("Remove them?", err=True):
                raise typer.Exit(1) from None
            report = run_build(partial(build, replace=True), settings, self, json=self.json)

        if not self.json:
            say_what_to_try(out, report)


def say_what_to_try(index_dir: Path, report: "BuildReport") -> None:
    """Say how a new index is asked, and its questions are listed if there are some."""
    list_them = [(command("questions", index_dir), "bold"), " or "] if report.counts.get("questions") else []
    say("Try: ", *list_them, (command("ask", index_dir, "YOUR QUESTION"), "bold"))


def index_beside(corpus: Path) -> Path:
    """Return the default of --out: in the current folder, or next to a corpus that contains it.

    Raises ConfigError if the index of another corpus is there.
    """
    source = corpus.resolve()
    name = f"{source.name if source.is_dir() else source.name.split('.')[0] or source.name}.kraq"
    out = source.parent / name if Path.cwd().is_relative_to(source) else Path(name)
    if (out / "manifest.json").is_file():
        from kraq_dspy.asset.store.index import Index

        with Index.open(out, unfinished=True) as there:
            origin = there.manifest.origin.get("path")
        if origin != str(source):
            raise ConfigError(
                f"{str(out)!r} is the index of {origin or 'another corpus'!r}. Name another folder with --out."
            )
    return out


def _cells(usage: "Usage", cost: float | None) -> tuple[str, str, str, str]:
    money = "" if cost is None else _money(cost)
    return f"{usage.calls:,}", compact(usage.prompt_tokens), compact(usage.completion_tokens), money


def _money(cost: float) -> str:
    """Format an amount, so that what costs something never reads as nothing."""
    return "< 0.01" if 0 < cost < 0.005 else f"{cost:,.2f}"


@command_class
class ListQuestions(Scoped):
    """The representative questions, the largest groups of each level first, each with the passages that answer it.

    A group whose question few of its passages answer shows its topic, with the question as an example. A group about
    which nothing could be asked stands last, with its topic alone.
    """

    index_dir: IndexDir
    level: Annotated[int | None, Option(min=0, help="Level to list; 0 is the broadest.")] = None
    source: Annotated[Literal["kraq", "random"], Option(help="kraq, or random for the baseline's questions.")] = "kraq"
    starters: Annotated[
        int | None,
        Option(min=1, help="N questions to begin with: answerable, and together about most of the corpus."),
    ] = None
    long: Annotated[bool, Flag("--long", help="Also level, passages and files of the group, and every passage.")] = (
        False
    )
    personal: Annotated[
        bool, Flag("--personal", help="Only questions with e-mail addresses, phone or card numbers.")
    ] = False
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.apps.views import ListedQuestion
        from kraq_dspy.asset.corpus.normalise import find_personal
        from kraq_dspy.workspace.topics import asking_first, topics

        if self.starters is not None:
            _show_starters(self, self.starters)
            return
        with self.readable(self.index_dir) as index:
            listed = list(index.questions(self.level, source=self.source))
            deepest = max((question.level for question in index.questions(source=self.source)), default=None)
            topic_by_id = topics(index, listed)
            shown = [id for question in listed for id in question.evidence[: None if self.long else 1]]
            passage_of = {chunk.id: chunk for chunk in index.chunks_by_id(list(dict.fromkeys(shown)))}

        if self.level is not None and deepest is not None and self.level > deepest:
            raise ConfigError(f"--level is {self.level}; the deepest level with questions here is {deepest}.")
        listed = asking_first(listed, topic_by_id)
        if self.personal:
            listed = [question for question in listed if find_personal(question.text)]

        if self.json:
            print_json([ListedQuestion.of(each, topic_by_id.get(each.id, "")).to_json() for each in listed])
            return
        if not listed:
            say("No questions here." if self.level is None else f"No questions on level {self.level}.")
        for question in listed:
            topic = "" if self.personal else topic_by_id.get(question.id, "")  # it would hide what is looked for
            _show_question(question, topic, passage_of, is_long=self.long)


def _show_question(question: "Question", topic: str, passage_of: "Mapping[str, Chunk]", *, is_long: bool) -> None:
    """The question, how many passages answer it, and the first of them."""
    output.print(shown_question(question, topic))
    if is_long:
        group = f"{counted(len(question.chunk_ids), 'passage')}, {counted(len(question.document_ids), 'file')}"
        say(f"    level {question.level}, stands for {group}", style="dim")
    if not question.evidence:
        return
    verb = "mentions" if question.evidence_by == MENTIONS else "answers"
    n_answering = len(question.evidence)
    head = f"{counted(n_answering, 'passage')} {verb if n_answering == 1 else verb[:-1]} it"
    for place, chunk in enumerate(passage_of[id] for id in question.evidence if id in passage_of):
        name = short(chunk.title or chunk.document_id, 60)
        before = f"    {head}: " if place == 0 else "    "
        output.print(Text.assemble((before, "dim"), name, (". ", "dim"), short(chunk.text, max(60, output.width - 60))))


def shown_question(question: "Question", topic: str) -> Text:
    """Return the question; for a group that it does not stand for, the topic with the question as an example."""
    style = "dim" if question.duplicate_of else ""
    if not topic:
        return Text.assemble(short(question.text, 200), style=style)
    example = "" if question.is_topic else f", {counted(len(question.chunk_ids), 'passage')}, such as: {question.text}"
    return Text.assemble(("About ", "dim"), short(topic, 200), short(example, 240), style=style)


def _show_starters(command: ListQuestions, count: int) -> None:
    from kraq_dspy.apps.cli.ask import show_suggested
    from kraq_dspy.apps.views import SuggestedQuestion
    from kraq_dspy.workspace.suggesting import starters

    with command.readable(command.index_dir) as index:
        chosen = starters(index, count)
    if command.json:
        print_json([each.to_json() for each in SuggestedQuestion.all_of(chosen)])
    else:
        show_suggested(chosen, f"{command.index_dir} answers, among others:" if chosen else "No questions here.")
