"""Makes test sets from an index, updates them, and lists what questions leave out: `kraq
testset`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kraq_dspy.apps.cli.model_options import Calls, Limits, QuestionFile, Reads, TakesStates
from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, Questions, Seed, command_class, require_writable_file
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import (
    command,
    counted,
    grid,
    note,
    output,
    print_json,
    say,
    short,
    show_counts,
    two_columns,
)
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.coverage import ABOUT, Coverage, coverage_of
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.halves import LEAST_ROWS
from kraq_dspy.eval.questions import read_questions
from kraq_dspy.records import MADE, OWN, STALE
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.testset import TESTSET_QUESTIONS
from kraq_dspy.testset.kinds import read_shares
from kraq_dspy.testset.making import TestsetPlan, estimate_testset, make_testset
from kraq_dspy.testset.qrels import write_qrels
from kraq_dspy.testset.review import with_decisions
from kraq_dspy.testset.testset import Testset
from kraq_dspy.testset.upkeep import update_testset


@command_class
class MakeTestset(TakesStates, Reads, Calls, Limits):
    """Write questions that the index answers, with answers and evidence.

    `kraq eval DIR FILE` measures with them.

    One half is made of statements of the documents; the other has questions that the index asked itself (without
    them if you name --kinds: fact, bridge, unanswerable, list, comparison, broad, false_premise). What both halves
    decide about two systems can be trusted. Several different retrievers find the gold passages, and kraq drops
    most questions that cannot separate two systems. Without a language model (--lm) the embedded reader writes
    them. The same command resumes an interrupted run. It keeps rows of FILE that somebody approved, edited or
    rejected (`kraq serve DIR --open --testset FILE --edit`).
    """

    index_dir: IndexDir
    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FILE", help="The test set; FILE.draft keeps the model's replies."),
    ] = Path("test.jsonl")
    n: Annotated[int, Option("--n", "-n", min=1, help="Number of questions of each half.")] = TESTSET_QUESTIONS
    kinds: Annotated[
        str | None,
        Option(
            metavar="KINDS",
            help="Kinds, with shares if they differ: fact=3,bridge=2.",
            show_default="all",
        ),
    ] = None
    seed: Seed = 0
    estimate: Annotated[bool, Flag("--estimate", help="Print the number of calls it would take, and stop.")] = False
    json: Json = False

    def run(self) -> None:
        shares = None if self.kinds is None else shares_in(self.kinds)
        read_shares(shares)  # before anything is opened
        self.require_asked("testset make", "examining")
        require_writable_file(self.out)
        plan = TestsetPlan(self.n, shares, self.seed)
        with self.opened(self.index_dir) as space:
            if self.estimate:
                estimate = estimate_testset(space, plan)
                if self.json:
                    print_json(estimate)
                else:
                    show_counts("Estimate; the embedded reader costs nothing", estimate)
                return
            draft = self.out.with_name(f"{self.out.name}.draft")
            with Bars(space.models.settings, quiet=self.json) as bars:
                made = make_testset(space, plan=plan, draft=draft, progress=bars)
        if self.out.is_file():
            made = with_decisions(made, Testset.load(self.out).rows)
        if len(made) or not self.out.is_file():  # rows that are there are not lost to none
            made.save(self.out)
        if self.json:
            print_json({**made.about(), "file": str(self.out)})
        else:
            show_testset(made, self.out, asked_for=self.n)
        if not len(made):
            raise EvaluationError(
                f"No question could be made of {str(self.index_dir)!r}. Without a language model "
                "questions are in English alone: try more documents, or --lm MODEL"
            )
        if not self.json:
            has_evidence = any(row.is_answerable for row in made)
            flags = ["--retrieval-only"] if has_evidence else []
            say(f"Try: {command('eval', self.index_dir, self.out, *flags)}")


@command_class
class UpdateTestset(TakesStates, Reads, Calls, Limits):
    """Update a test set after the index has changed.

    Rows whose evidence is gone become stale. kraq adds as many new rows, or --new N, about documents that only
    stale rows or none are about. It keeps the other rows.
    """

    index_dir: IndexDir
    testset: Annotated[Path, Argument(metavar="FILE", help="Test set of `kraq testset make`.")]
    new: Annotated[
        int | None, Option(min=0, help="Number of new questions.", show_default="as many as became stale")
    ] = None
    drop: Annotated[bool, Flag("--drop", help="Leave stale rows out instead of marking them.")] = False
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="The updated set. Default: FILE itself.")
    ] = None
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        out = self.out or self.testset
        require_writable_file(out)
        before = Testset.load(self.testset)
        self.require_asked("testset update", "examining")
        with self.opened(self.index_dir) as space, Bars(space.models.settings, quiet=self.json) as bars:
            draft = out.with_name(f"{out.name}.draft")
            update = update_testset(space, before, new=self.new, seed=self.seed, draft=draft, progress=bars)
        remaining = [row for row in update.testset if not (self.drop and row.status == STALE)]
        replace(update.testset, rows=tuple(remaining)).save(out)
        counts = {"kept": update.kept, "moved": update.moved, "stale": update.stale, "added": update.added}
        if self.json:
            print_json({**counts, "unasked": update.unasked, "file": str(out)})
        else:
            output.print(two_columns(str(out), counts))
            if update.stale and not self.drop:
                note(" are marked: look at them, or leave them out with --drop.", label=counted(update.stale, "row"))
            if update.unasked and not update.added and self.new is None:
                note(" have no row; --new N writes rows about them.", label=counted(update.unasked, "document"))


@command_class
class CoverTestset(TakesStates, Reads, Calls, Limits, QuestionFile):
    """List the communities that your own questions never touch.

    The command calls no model. With --out, kraq writes questions about those communities.
    """

    index_dir: IndexDir
    questions: Questions
    about: Annotated[float, Option(min=0, max=1, help="Least cosine of a passage that is about a question.")] = ABOUT
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE", help="File for new questions about untouched communities."),
    ] = None
    n: Annotated[int, Option("--n", "-n", min=1, help="Number of questions for --out.")] = 20
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        if self.out is not None:
            require_writable_file(self.out)
        examples = read_questions(self.questions, self.columns())
        made = None
        self.require_asked("testset coverage", "examining")
        with self.opened(self.index_dir) as space, Bars(space.models.settings, quiet=self.json) as bars:
            coverage = coverage_of(space, examples, about=self.about)
            only = frozenset(chunk_id for community in coverage.untouched for chunk_id in community.chunk_ids)
            if self.out is not None and only:
                plan = TestsetPlan(self.n, seed=self.seed, only=only)
                made = make_testset(space, plan=plan, draft=self.out.with_name(f"{self.out.name}.draft"), progress=bars)
                made.save(self.out)
        if self.json:
            shown = {
                "share": coverage.share,
                "coverage": coverage,
                "untouched": coverage.untouched,
                "refused": None if coverage.refused is None else _questions_of(coverage.refused, examples),
                "near_no_passage": _questions_of(coverage.far, examples),
                "not_anticipated": _questions_of(coverage.unanticipated, examples),
                "added": len(made) if made is not None else 0,
            }
            print_json(shown)
            return
        _show_coverage(coverage, examples, about=self.about)
        if made is not None and self.out is not None:
            show_testset(made, self.out, asked_for=self.n)
        elif only:
            about = [] if self.about == ABOUT else ["--about", f"{self.about:g}"]
            more = command(
                "testset",
                "coverage",
                self.index_dir,
                self.questions,
                *self.columns().options(),
                *about,
                "--out",
                "more.jsonl",
            )
            say(f"Questions about them: {more}")


@command_class
class WriteQrels:
    """Write the evidence of a test set as TREC qrels, for trec_eval and tools like it.

    A line is `query-id 0 document-id 1`. `kraq eval --qrels FILE` reads such a file.
    """

    testset: Annotated[Path, Argument(metavar="FILE", help="Test set of `kraq testset make` or `label`.")]
    out: Annotated[Path, Option("--out", "-o", metavar="FILE", help="The qrels.")] = Path("test.qrels")

    def run(self) -> None:
        require_writable_file(self.out)
        say(f"Qrels: {write_qrels(Testset.load(self.testset), self.out)}")


_SHOWN, _SHOWN_QUESTIONS = 15, 5
"""Communities, and questions of a kind, of which the terminal tells."""
_REFUSED, _FAR = "not answered by the documents", "near no passage"
_UNANTICIPATED = "anticipated by no question of the index"


def _questions_of(ids: Sequence[str], examples: Sequence[Example]) -> list[dict[str, str]]:
    questions = {example.id: example.question for example in examples}
    return [{"id": id, "question": questions[id]} for id in ids]


def _show_coverage(coverage: Coverage, examples: Sequence[Example], *, about: float) -> None:
    untouched = coverage.untouched
    refused = coverage.refused
    rows = {
        "questions": f"{coverage.questions:,}",
        _REFUSED: "unknown: kraq update measures it" if refused is None else f"{len(refused):,}; kraq ask refuses them",
        _FAR: f"{counted(len(coverage.far), 'other')} (no cosine of {about:g} or more; --about sets it)",
        _UNANTICIPATED: f"{len(coverage.unanticipated):,}, though passages are about them",
        "communities": f"{len(coverage.communities):,}, of which {len(untouched):,} are never touched",
        "passages touched": f"{coverage.share:.0%}, with all of their communities",
    }
    output.print(two_columns("coverage", rows))

    if untouched:
        cells = []
        for community in untouched[:_SHOWN]:
            title = short(community.title or community.community_id, 70)
            cells.append((title, f"{len(community.chunk_ids):,}"))
        output.print(grid("never touched", ["community", "passages"], cells, right=["passages"]))
        if len(untouched) > _SHOWN:
            say(f"Shown are the {_SHOWN} largest of {len(untouched):,}; --json lists all.")

    _show_questions(_REFUSED, _questions_of(refused or (), examples))
    _show_questions(_FAR, _questions_of(coverage.far, examples))
    _show_questions(_UNANTICIPATED, _questions_of(coverage.unanticipated, examples))
    if coverage.far:
        note(
            " touch no community, and some of them have an answer in the documents.", label="Questions near no passage"
        )
    if len(coverage.far) > coverage.questions / 2:
        lower = max(0.0, round(about - 0.1, 2))
        note(
            f" of your questions are near no passage; --about {lower:g} counts passages that are less near.",
            label="Most",
        )


def _show_questions(heading: str, questions: Sequence[Mapping[str, str]]) -> None:
    if not questions:
        return
    cells = [[short(each["question"], 70)] for each in questions[:_SHOWN_QUESTIONS]]
    output.print(grid(heading, ["question"], cells))
    if len(questions) > _SHOWN_QUESTIONS:
        say(f"Shown are the first {_SHOWN_QUESTIONS} of {len(questions):,}; --json lists all.")


def shares_in(words: str) -> Mapping[str, float]:
    """Read "fact=3,bridge" as {"fact": 3, "bridge": 1}. Raises ConfigError for anything but a
    list of kinds."""
    shares = {}
    for word in filter(None, (part.strip() for part in words.split(","))):
        name, separator, share = word.partition("=")
        try:
            shares[name.strip().replace("-", "_")] = float(share) if separator else 1.0
        except ValueError:
            raise ConfigError(f"--kinds has {word!r}; expected KIND or KIND=SHARE, such as fact=3.") from None
    return shares


def show_testset(made: Testset, file: Path, *, asked_for: int) -> None:
    """Show what the set has, what kraq dropped and why, which kinds are missing, and whether it
    has fewer questions than you asked for."""
    about = made.about()
    rows = {
        "questions": ", ".join(f"{count} {kind}" for kind, count in made.counts().items()) or "none",
        "about": f"{counted(about['documents'], 'document')}, {counted(about['communities'], 'community')}",
        "halves": f"{about['halves'][MADE]} made of statements, {about['halves'][OWN]} asked by the index itself",
        "words shared": f"{about['median_overlap']:.2f} of a made question's, median; of human questions, about 0.8",
        "found by all retrievers": f"{about['solved_by_all']:.0%}; by none: {about['solved_by_none']:.0%}",
    }
    dropped = {reason: count for reason, count in made.rejected.items() if count}
    if dropped:
        rows["dropped"] = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
    output.print(two_columns(str(file), rows))

    if about["halves"][MADE] < asked_for:
        note(
            f" of the {asked_for:,} that were asked for: this index gives no more.",
            label=counted(about["halves"][MADE], "made question"),
        )
    if 0 < about["halves"][OWN] < LEAST_ROWS:
        note(f" {counted(about['halves'][OWN], 'question')} of the index cannot decide; it takes {LEAST_ROWS}.")
    if {row.model for row in made if row.half == MADE} == {EMBEDDED}:
        note(" no language model wrote the made half: it favors search by words.")
    for kind, reason in made.left_out.items():
        note(f" {reason}.", label=f"No questions of the kind {kind}:")
    if about["solved_by_all"] > 0.8:
        note(" most questions are answered by every retriever here, so they tell little: a larger corpus tells more.")
