"""Answers from points that all reports of a level contribute, rated: GraphRAG's global search (Edge et al., 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.clock import Clock, announce
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import FittingPredict, SignatureLike, fitting_step, further_inputs, prediction
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.ports import RetrieverLike
from kraq_dspy.records import Hit, RatedPoint
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.signatures import AnswerFromPoints, RatePoints
from kraq_dspy.spec import ProgramSpec, option
from kraq_dspy.state import SavableModule

UNKNOWN = "I do not know"
AT_ONCE = 16  # map calls in flight


@dataclass(frozen=True)
class GraphGlobalOptions:
    k: int = option(100, "Reports, nearest to the question first.", least=1, counts="reports")
    tokens: int = option(8000, "Tokens of each batch of reports, and of the points.", least=1)
    level: int = option(0, "Level of the reports, 0 is the broadest.", least=0, counts="levels")


class GraphGlobalSearch(SavableModule):
    """Collects rated points from summaries of communities (GraphRAG's reports), and answers from the most important
    points (GraphRAG's global search).

    Args:
        retrieve: a retriever of summaries (`space.retriever("graph-global")`).
        k: the number of summaries to read.
        tokens: the most tokens of a batch of summaries, and of the points for the answer.
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a number out of range.

    Map: the model reads the `k` summaries nearest to the question, in batches, and lists points, each with an
    importance. Reduce: the model answers from the points with an importance above 0, the most important first.

    GraphRAG reads every summary of a level, in random order. To do the same, set `k` to the number of summaries.
    Fewer summaries cost less, and the most distant summaries rarely help. If there is no point, the answer is "I do
    not know", without another call.

    The prediction has `answer`, `hits` (the summaries), `points` (RatedPoint, all above 0), `n_batches` and
    `timings`: seconds for "retrieve", "map", "reduce" and "wall".

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> space.ask("Where did Ada live?", GraphGlobalSearch(space.retriever("graph-global"))).n_batches
    1
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        *,
        k: int = GraphGlobalOptions.k,
        tokens: int = GraphGlobalOptions.tokens,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        require_options(GraphGlobalOptions, k=k, tokens=tokens)
        self.retrieve = as_retriever(retrieve)
        self.k = k
        self.tokens = tokens
        self.rate = FittingPredict(RatePoints, shorten="reports")
        self.answer = fitting_step(AnswerFromPoints, signature, "points")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, "points")

        async def rate(batch: tuple[int, list[str]]) -> dspy.Prediction:
            number, reports = batch
            await announce(f"rating reports, {number} of {len(batches)}")
            return await call(self.rate, question=question, reports=reports)

        clock = Clock()
        await clock.begin("retrieve", "retrieving")
        hits = await call(self.retrieve, question, self.k)
        batches = _batches(hits, self.tokens)
        await clock.begin("map")
        rated = await at_once(rate, list(enumerate(batches, start=1)), limit=AT_ONCE)
        points = _points(rated)
        await clock.begin("reduce", "answering")
        shown = _shown(points, self.tokens)
        reply = dspy.Prediction(answer=UNKNOWN)
        if shown:
            reply = await call(self.answer, question=question, points=shown, **further)
        return prediction(reply, hits=hits, points=points, n_batches=len(batches), timings=clock.timings())


def _batches(hits: Sequence[Hit], tokens: int) -> list[list[str]]:
    """Reports in order; one that is longer than `tokens` is a batch of its own."""
    batches: list[list[str]] = []
    left = 0
    for hit in hits:
        size = count_tokens(hit.chunk.passage)
        if not batches or size > left:
            batches.append([])
            left = tokens
        batches[-1].append(hit.chunk.passage)
        left -= size
    return batches


def _points(rated: Sequence[dspy.Prediction]) -> list[RatedPoint]:
    """Return those above 0, each once, most important first; ties in the order of the reports."""
    by_text: dict[str, RatedPoint] = {}
    for reply in rated:
        for point in reply.points or ():
            text, importance = point.point.strip(), min(100, max(0, point.importance))
            if text and importance and importance > (by_text[text].importance if text in by_text else 0):
                by_text[text] = RatedPoint(text, importance)
    return sorted(by_text.values(), key=lambda point: -point.importance)


def _shown(points: Sequence[RatedPoint], tokens: int) -> list[str]:
    shown: list[str] = []
    for point in points:
        line = f"{point.importance}: {point.point}"
        tokens -= count_tokens(line)
        if tokens < 0 and shown:
            break
        shown.append(line)
    return shown


GRAPH_GLOBAL = ProgramSpec(
    "graph-global",
    "Summaries of a level; points rated, then brought together.",
    lambda space, part, options: GraphGlobalSearch(
        space.retriever("graph-global", level=options.level), k=options.k, tokens=options.tokens
    ),
    "GraphGlobalSearch",
    GraphGlobalOptions,
    takes="nothing",
    prepared=("graph",),
    keys=("points", "n_batches"),
    source="GraphRAG, global (Edge et al., 2024)",
)
