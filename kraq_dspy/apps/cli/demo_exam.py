"""Lets an index write an exam of its own and picks the retriever that passes it: the last step of `kraq demo`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kraq_dspy.apps.cli.terminal import command, grid, output, say
from kraq_dspy.eval.evaluation import Evaluation, evaluate
from kraq_dspy.eval.statistics import paired_difference
from kraq_dspy.exam.kinds import SHARES, WITHOUT_ANSWER
from kraq_dspy.exam.making import TestsetPlan, make_testset
from kraq_dspy.models.lms.roles import rule_based_models
from kraq_dspy.workspace import Workspace

if TYPE_CHECKING:
    from kraq_dspy.ports import Progress

RETRIEVERS = ("dense", "hybrid", "adaptive")
"""The cheapest first. A search by words alone is left out, since an exam copies words."""
N_QUESTIONS, K = 40, 5
KINDS = {kind: share for kind, share in SHARES.items() if kind not in WITHOUT_ANSWER}
"""Those that something answers, by their shares in any test set."""
METRIC = f"recall@{K}"


@dataclass(frozen=True)
class Marks:
    """Return how much of the evidence of `n` questions each retriever finds. `picked` is the
    cheapest that cannot be told from the best, as `kraq select` picks."""

    n: int
    means: Mapping[str, float]
    picked: str


@dataclass(frozen=True)
class Exam:
    """The marks by the questions that an index wrote itself, and by people's."""

    own: Marks
    people: Marks


def take_exam(space: Workspace, people: Sequence[Mapping[str, Any]], progress: "Progress | None" = None) -> Exam | None:
    """Make an exam with the embedded reader, and ask each retriever its questions and people's.

    Returns None if the passages yield no question.
    """
    free = Workspace(space.index, space.embedder, rule_based_models(space.embedder))
    exam = make_testset(free, plan=TestsetPlan(N_QUESTIONS, KINDS), progress=progress)
    if not exam.rows:
        return None

    systems = {name: space.retriever(name) for name in RETRIEVERS}
    own = evaluate(systems, exam.examples(), [METRIC], space=space, k=K)
    with_peoples_questions = evaluate(systems, list(people), [METRIC], space=space, k=K)
    return Exam(_marks(own), _marks(with_peoples_questions))


def _marks(evaluation: Evaluation) -> Marks:
    scores: dict[str, list[float]] = {name: [] for name in RETRIEVERS}
    for row in sorted(evaluation.rows, key=lambda each: each.question_id):
        scores[row.system].append(row.metrics[METRIC])
    means = {name: evaluation.mean(METRIC, name) for name in RETRIEVERS}
    best = scores[max(RETRIEVERS, key=means.__getitem__)]
    picked = next(name for name in RETRIEVERS if paired_difference(scores[name], best).interval.high >= 0)
    return Marks(len(best), means, picked)


def show_exam(exam: Exam) -> None:
    """Print each retriever's score, the pick, and the commands for your own documents."""
    say(f"\n5. An exam that the index wrote itself, next to people's questions: {METRIC}", style="bold")
    headings = ("retriever", f"own exam, {exam.own.n}", f"people's, {exam.people.n}")
    rows = [(name, _cell(exam.own, name), _cell(exam.people, name)) for name in RETRIEVERS]
    output.print(grid("", headings, rows, right=headings[1:]))
    say(
        "*: the cheapest that cannot be told from the best. An exam finds what is broken; people's questions tell more."
    )
    say("With your documents: ", (command("testset", "make", "docs.kraq"), "bold"))
    say("                     ", (command("select", "docs/", "test.jsonl"), "bold"))


def _cell(marks: Marks, name: str) -> str:
    return f"{marks.means[name]:.3f}{'*' if name == marks.picked else ' '}"
