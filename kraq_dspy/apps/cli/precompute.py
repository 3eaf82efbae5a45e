"""Prepares offline what programs look up: `kraq precompute`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal

from rich import filesize
from typer import Argument, Option

from kraq_dspy.apps.cli.model_options import Calls, Limits, TakesStates
from kraq_dspy.apps.cli.options import IndexDir, Json, Repeated, command_class
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import note, print_json, say, short, show_counts
from kraq_dspy.asset.scope import Scope
from kraq_dspy.errors import ConfigError, counted
from kraq_dspy.indexing.prepare.instructed import TOP_N, InstructedOptions, Price, precompute, price_of_pairs
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.models.embedders.instructed import WeightedSentences

Source = Literal["kraq", "random", "all"]
WHAT = ("instructed", "qa-pairs", "graph", "raptor", "k2rag")


@command_class
class Precompute(TakesStates, Calls, Limits):
    """Prepare what programs look up.

    instructed (the default): passages embedded as seen from the stored questions, for `kraq ask --program efficient`;
    kraq shows the price first. With `[instructed] kind = "sentences"` it embeds the passages' sentences instead.

    qa-pairs: every passage as question-answer pairs, for qa-rag. graph: embeddings of entities and summaries, for
    GraphRAG's searches. raptor: a tree of summaries, for the retriever raptor. k2rag: every document summarized, and
    indexed so, for the program k2rag.

    Run it again to resume an interrupted run, or after you have added passages or questions.
    """

    index_dir: IndexDir
    what: Annotated[
        Repeated,
        Argument(metavar="[WHAT ...]", help="instructed (the default), qa-pairs, graph, raptor, k2rag."),
    ] = None
    top_n: Annotated[str | None, Option(help="Passages for each question: a number, or all.", show_default="20")] = None
    source: Annotated[
        Source | None,
        Option(help="Questions to embed for; random is the baseline.", show_default="kraq"),
    ] = None
    scope: Annotated[
        Repeated,
        Option(metavar="LABEL", help="Let models write the view of the scope with this label; repeatable."),
    ] = None
    json: Json = False

    def run(self) -> None:
        self.require_asked("precompute", "preparing")
        if self.scope:
            self._make_view(self.scope)
            return
        kinds = list(dict.fromkeys(self.what or ()))
        for unknown in set(kinds) - set(WHAT):
            raise ConfigError(f"There is no {unknown!r} to prepare; there are: {', '.join(WHAT)}.")
        if "instructed" in kinds and len(kinds) > 1:
            raise ConfigError("instructed is prepared by a command of its own: kraq precompute DIR")
        if kinds and kinds != ["instructed"]:
            _refuse({"top-n": self.top_n, "source": self.source}, f"goes with the embeddings, not with {kinds[0]}")
            self._make(kinds)
            return
        of_models = {each.name: getattr(self, each.name) for each in (*fields(Calls), *fields(Limits))} | {
            "config": None
        }
        _refuse(of_models, "goes with qa-pairs, raptor or k2rag: embeddings ask no language model")

        how = InstructedOptions(parse_top_n(self.top_n or str(TOP_N)), self.source or "kraq")
        kept = "What was embedded is kept; the same command resumes from there."
        with self.opened(self.index_dir, write=True) as opened:
            space = opened.owned()
            if not self.json and not isinstance(space.instructed_embedder, WeightedSentences):
                say(price_in_words(price_of_pairs(space.index, space.instructed_embedder, how)))
            with Bars(quiet=self.json, kept=kept) as bars:
                report = precompute(space.index, space.instructed_embedder, how, bars)
        if self.json:
            print_json(report)
            return
        show_counts(self.index_dir, report, "n_bytes", size=filesize.decimal(report["n_bytes"]))
        for question_id, reason in report.get("failures", ())[:10]:
            note(short(reason, 300), label=f"{question_id}: ")

    def _make_view(self, labels: Sequence[str]) -> None:
        _refuse({"top-n": self.top_n, "source": self.source}, "does not go with --scope")
        if self.what:
            raise ConfigError(f"{self.what[0]} does not go with --scope.")
        scope = Scope(labels)
        with self.opened(self.index_dir) as space:
            with Bars(space.models.settings, quiet=self.json) as bars:
                space.prepare(scope, bars)
            with space.scoped(scope) as scoped:
                counts = scoped.index.counts()
        if self.json:
            print_json(counts)
        else:
            show_counts(", ".join(labels), counts)

    def _make(self, kinds: Sequence[str]) -> None:
        """Each of `kinds`, names of PREPARATIONS, and what was done."""

        with self.opened(self.index_dir, write=True) as opened, Bars(opened.models.settings, quiet=self.json) as bars:
            space = opened.owned()
            reports = {
                each.name: each.make(space, each.options(), bars)
                for each in PREPARATIONS.values()
                if each.name in kinds
            }
        if self.json:
            print_json(reports)
            return
        for name, report in reports.items():
            show_counts(name, report)


def price_in_words(price: Price) -> str:
    """Return what will be read, about how long that takes on this machine, and how much room it
    needs."""
    if not price.readings:
        return f"Nothing is left to read: all passages of {counted(price.questions, 'question')} are stored."
    minutes, seconds = round(price.seconds / 60), max(1, round(price.seconds))
    while_reading = counted(minutes, "minute") if price.seconds > 100 else counted(seconds, "second")
    return (
        f"{counted(price.readings, 'reading')} of a question with a passage, for "
        f"{counted(price.questions, 'question')}: about {while_reading} "
        f"here, and {filesize.decimal(price.n_bytes)}. --top-n changes it; what is stored is kept if you stop."
    )


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise ConfigError(f"--{name.replace('_', '-')} {why}.")


def parse_top_n(text: str) -> int | None:
    """The value of `--top-n`: a number, or "all" (None). Raises ConfigError."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--top-n is {text!r}; it must be a number from 1, or all.")
    return int(text)
