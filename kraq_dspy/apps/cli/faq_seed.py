"""Fills an FAQ cache from questions or passages of an index: `kraq faq seed`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Literal

from typer import Option

from kraq_dspy.apps.cli.faq import user
from kraq_dspy.apps.cli.model_options import Calls, Limits, Owns, TakesStates
from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, command_class
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, note, print_json, say, short, show_counts
from kraq_dspy.asset.store.faq import FAQ, FaqCache
from kraq_dspy.errors import ConfigError
from kraq_dspy.indexing.faq.seed import seed_answers
from kraq_dspy.indexing.faq.synthesize import SyntheticPlan, make_synthetic_pairs
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program

PassageOption = partial(Option, rich_help_panel="With --of passages")
Critics = Literal["ratings", "roundtrip"]


@command_class
class Seed(TakesStates, Owns, Calls, Limits):
    """Answer the representative questions, and keep the answers for review.

    With --of passages, the role generator makes a question and its answer from each passage of the documents
    instead, and the role judge keeps those that pass: is it answered there, does anybody ask it, can it be
    understood alone?

    Run it again to resume an interrupted run, or after the index has grown: kraq skips existing questions, and
    repeats no call.
    """

    index_dir: IndexDir
    of: Annotated[Literal["questions", "passages"], Option(help="What the entries are made of.")] = "questions"
    limit: Annotated[int | None, Option(min=1, help="At most N new questions, or N passages.")] = None
    approve: Annotated[bool, Flag("--approve", help="Serve the answers at once, without review.")] = False
    starters: Annotated[int | None, Option(min=1, help="Only the N that `kraq questions --starters` lists.")] = None
    program: Annotated[str | None, Option("--program", "-p", help="Program that answers; see kraq ask --programs.")] = (
        None
    )
    retriever: Annotated[str | None, Option(help="Retriever of the passages.")] = None
    audience: Annotated[
        str | None,
        PassageOption(metavar="TEXT", help="People who will ask; a critic judges relevance to them."),
    ] = None
    critics: Annotated[
        Critics | None,
        PassageOption(
            help="ratings: three of them rate each pair, 1 to 5. roundtrip: the question must find its passage, and "
            "that give the answer again. Unset: roundtrip for a judge below two billion parameters."
        ),
    ] = None
    keep: Annotated[
        int | None, PassageOption(min=1, max=5, help="Keep pairs that every critic rates at least this; unset: 5.")
    ] = None
    json: Json = False

    def run(self) -> None:
        of_questions = {"--starters": self.starters, "--program": self.program, "--retriever": self.retriever}
        of_passages = {"--audience": self.audience, "--critics": self.critics, "--keep": self.keep}
        for name, value in (of_passages if self.of == "questions" else of_questions).items():
            if value is not None:
                raise ConfigError(f"{name} does not go with --of {self.of}.")

        report = self._answers() if self.of == "questions" else self._synthetic_pairs()
        if self.json:
            print_json(report)
            return
        show_counts(self.index_dir, report)
        for failure in report.failures[:10] if self.of == "questions" else ():
            note(short(failure.reason, 240), label="failed: ")
        waiting = report.added if self.of == "passages" else report.answered
        waiting = (0 if self.approve else waiting) + getattr(report, "unanswered", 0)
        if waiting:
            say(f"{waiting:,} wait for review: {command('serve', self.index_dir, '--open', '--edit')}")
        if self.of == "passages" and report.failures:
            note(f"what failed, and why: {command('status', self.index_dir)}; run it again to try once more.")

    def _answers(self) -> Any:
        choice = choose_program(self.program or DEFAULT_PROGRAM, self.retriever)
        if choice.inner is not None:
            raise ConfigError(
                f"{self.program} answers from the FAQ cache; seed it with the program behind: {choice.inner.spec.name}"
            )
        with self._opened() as (space, entries, bars):
            chosen = None if self.starters is None else [each.question for each in space.starters(self.starters)]
            program = space.make_program(choice)
            self.require_asked("faq seed", programs=[program])
            return seed_answers(
                space.index, entries, program, space.models,
                by=user(), questions=chosen, limit=self.limit, approve=self.approve, progress=bars,
            )  # fmt: skip

    def _synthetic_pairs(self) -> Any:
        if self.audience is not None and not self.audience.strip():
            raise ConfigError("--audience is empty; say who will ask.")
        if self.critics == "roundtrip" and (self.audience is not None or self.keep is not None):
            raise ConfigError("--audience and --keep are for --critics ratings; roundtrip rates nothing.")
        plan = SyntheticPlan(self.audience, self.keep, limit=self.limit, critics=self.critics)
        self.require_asked("faq seed --of passages", "synthesizing")
        with self._opened(write=True) as (space, entries, bars):
            find = space.retriever("dense")
            return make_synthetic_pairs(
                space.index, entries, space.models, plan, by=user(), approve=self.approve, retriever=find, progress=bars
            )

    @contextmanager
    def _opened(self, *, write: bool = False) -> Iterator[tuple[Workspace, FaqCache, Bars]]:
        """The index with its models, its FAQ cache, made if there is none, and bars."""

        with (
            self.opened(self.index_dir, write=write) as space,
            FaqCache(space.path / FAQ) as entries,
            Bars(space.models.settings, quiet=self.json) as bars,
        ):
            yield space, entries, bars
