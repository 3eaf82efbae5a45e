"""Lets an index write a test set of its own and picks the retriever that passes it: the last step of `kraq demo`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kraq_dspy.apps.cli.terminal import command, grid, output, say
from kraq_dspy.eval.evaluation import Evaluation, evaluate
from kraq_dspy.eval.statistics import paired_difference
from kraq_dspy.models.lms.roles import rule_based_models
from kraq_dspy.testset.kinds import SHARES, WITHOUT_ANSWER
from kraq_dspy.testset.making import TestsetPlan, make_testset
from kraq_dspy.workspace import Workspace

if TYPE_CHECKING:
    from kraq_dspy.ports import Progress

RETRIEVERS = ("dense", "hybrid", "adaptive")
"""The cheapest first. A search by words alone is left out, since a test set copies words."""
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
class DemoTestset:
    """The marks by the questions that an index wrote itself, and by people's."""

    own: Marks
    people: Marks


def take_testset(
    space: Workspace, people: Sequence[Mapping[str, Any]], progress: "Progress | None" = None
) -> DemoTestset | None:
    """Make a test set with the embedded reader, and ask each retriever its questions and people's.

    Returns None if the passages yield no question.
    """
    free = Workspace(space.index, space.embedder, rule_based_models(space.embedder))
    testset = make_testset(free, plan=TestsetPlan(N_QUESTIONS, KINDS), progress=progress)
    if not testset.rows:
        return None

    systems = {name: space.retriever(name) for name in RETRIEVERS}
    own = evaluate(systems, testset.examples(), [METRIC], space=space, k=K)
    with_peoples_questions = evaluate(systems, list(people), [METRIC], space=space, k=K)
    return DemoTestset(_marks(own), _marks(with_peoples_questions))


def _marks(evaluation: Evaluation) -> Marks:
    scores: dict[str, list[float]] = {name: [] for name in RETRIEVERS}
    for row in sorted(evaluation.rows, key=lambda each: each.question_id):
        scores[row.system].append(row.metrics[METRIC])
    means = {name: evaluation.mean(METRIC, name) for name in RETRIEVERS}
    best = scores[max(RETRIEVERS, key=means.__getitem__)]
    picked = next(name for name in RETRIEVERS if paired_difference(scores[name], best).interval.high >= 0)
    return Marks(len(best), means, picked)


def show_testset(testset: DemoTestset) -> None:
    """Print each retriever's score, the pick, and the commands for your own documents."""
    say(f"\n5. A test set that the index wrote itself, next to human questions: {METRIC}", style="bold")
    headings = ("retriever", f"own test set, {testset.own.n}", f"people's, {testset.people.n}")
    rows = [(name, _cell(testset.own, name), _cell(testset.people, name)) for name in RETRIEVERS]
    output.print(grid("", headings, rows, right=headings[1:]))
    say(
        "*: the cheapest that cannot be told from the best. A test set finds what is broken; human questions tell more."
    )
    say("With your documents: ", (command("testset", "make", "docs.kraq"), "bold"))
    say("                     ", (command("select", "docs/", "test.jsonl"), "bold"))


def _cell(marks: Marks, name: str) -> str:
    return f"{marks.means[name]:.3f}{'*' if name == marks.picked else ' '}"
