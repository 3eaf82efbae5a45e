"""Retrieves by words, meaning and graph, each as far as the question calls for it: the retriever to start with.

Two signals complement each other. The base retriever's score says how much a passage resembles the question; a walk
from the best of its hits (`pagerank.py`) says how close a passage is to those in the graph. Which of them to believe
shows in the scores. Where the first hit stands out, the question names one thing, and the rest of the evidence lies
behind it: the walk starts there and leads away. Where the scores are flat, many passages speak to the question
directly: the walk starts from all of them, so that it hardly changes their order, and counts for less.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace

from kraq_dspy._internal.options import options_of, require_options
from kraq_dspy.asset.graph.passage_graph import PassageGraph, Visits
from kraq_dspy.ports import ChunkSource, Retriever
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, matches, ranked
from kraq_dspy.retrievers.pagerank import PageRankRetriever
from kraq_dspy.spec import RetrieverSpec, Space, option

DEPTH = 10
"""The rank whose score, over the first one's, is the shape."""

_MARKS = "?!.,;:'\"()“”"
_SPEAKER = r"(?m)^(\w[^\n:]{1,40}): "

STEEP, FLAT = 0.5, 0.9
"""From which shape downwards the graph gets its full weight, and from which upwards none."""


@dataclass(frozen=True)
class AdaptiveOptions:
    pagerank: float = option(0.6, "The largest weight of personalized PageRank, 0 for none.", least=0, most=1)
    pool: int = option(50, "Candidates from each side.", least=1)
    start: int = option(20, "Hits that the walk starts from.", least=1)
    sharpness: float = option(10.0, "How much more a better hit counts at the start.", least=0)
    damping: float = option(0.8, "Probability of walking on.", least=0.01, most=0.99)
    weight: float = option(0.4, "Weight of meaning in the search before the walk; words get the rest.", least=0, most=1)
    okapi: float = option(0.08, "Weight of the BM25 score, added in that search.", least=0)


@dataclass(eq=False, repr=False)
class AdaptiveRetriever(Retrieving):
    """Retrieves by words, by meaning and by the graph. Start with this retriever. `why` is "adaptive".

    Args:
        retrieve: the base retriever. A score of 0 must mean no similarity, as in `HybridRetriever`.
        graph: the graph of passages and entities (`space.passage_graph`).
        chunks: the source of the passages (`space.index`).
        most: the largest weight of the graph, in [0, 1]; 0 leaves the graph out.
        pool: the number of candidates from each side, at least `k`.
        start: the number of hits from which personalized PageRank starts.
        sharpness: the exponent of a hit's score at the start, 0 or more.
        damping: the damping of PageRank, in [0.01, 0.99].

    Raises:
        ValueError: for an option out of range.
        TypeError: if `retrieve` cannot be called with a question.

    A passage scores `w * (visits / most visits) ** 0.25 + (1 - w) * score / best score`, in [0, 1]. `w` is `most` if
    the base scores fall steeply: then the question names one thing, and further evidence is linked to this thing. `w`
    is 0 if the scores are flat (`graph_weight`).

    The candidates are the `pool` best passages of `retrieve`, and the `pool` passages with the most visits. A
    candidate that `retrieve` did not find gets at most the lowest base score. If `retrieve` scores no passage above
    0, the ranking of `retrieve` stays. If the question names the title of a document, or a speaker, the passages of
    this document or speaker come first. If the question names a site that is the title of documents ("honda.com"),
    only passages of these documents are found.

    The defaults were chosen on musique, squad and a part of multihop_rag, and confirmed on other sets
    (benchmarks/results/retrieval.md).

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> adaptive = AdaptiveRetriever(space.retriever("hybrid"), space.passage_graph, space.index)
    >>> [hit.chunk.title for hit in adaptive("Where did Ada live?", 2)]
    ['Ada', 'London']
    """

    retrieve: Retriever
    graph: PassageGraph
    chunks: ChunkSource
    _: KW_ONLY
    most: float = AdaptiveOptions.pagerank
    pool: int = AdaptiveOptions.pool
    start: int = AdaptiveOptions.start
    sharpness: float = AdaptiveOptions.sharpness
    damping: float = AdaptiveOptions.damping

    def __post_init__(self) -> None:
        options_of(AdaptiveOptions)["pagerank"].require("most", self.most)
        require_options(
            AdaptiveOptions, pool=self.pool, start=self.start, sharpness=self.sharpness, damping=self.damping
        )
        self.retrieve = as_retriever(self.retrieve)
        self.walk = PageRankRetriever(
            self.retrieve, self.graph, self.chunks, sharpness=self.sharpness, damping=self.damping
        )

    def find(self, request: RetrievalRequest) -> list[Hit]:
        question, k = request.question, request.k
        size = max(k, self.pool)
        ranking = replace(request, k=size).send_to(self.retrieve)
        weight = graph_weight([hit.score for hit in ranking], self.most)
        if not weight:
            hits = [Hit(hit.chunk, hit.score, question, "adaptive") for hit in ranking]
            return of_named_source(question, hits)[:k]

        visits = self.walk.visits(ranking[: self.start])
        chunks = {hit.chunk.id: hit.chunk for hit in ranking}
        for chunk in self._visited_beside(visits, chunks, request, size):
            chunks[chunk.id] = chunk

        shares = [0.0] * len(chunks)
        if visits is not None:
            most_visits = visits.peak
            shares = [count / most_visits for count in visits.of(list(chunks))]

        share_of_visits = dict(zip(chunks, shares, strict=True))
        scores = _mixed_scores(ranking, share_of_visits, weight)
        return of_named_source(question, ranked(chunks, scores, question, len(chunks), "adaptive"))[:k]

    def _visited_beside(
        self,
        visits: Visits | None,
        known: Mapping[str, Chunk],
        request: RetrievalRequest,
        size: int,
    ) -> list[Chunk]:
        """The passages that the walk visits most, at most `size`, without those that are known."""
        if visits is None:
            return []

        excluded = set(request.exclude)
        most_visited = [id for id, _ in visits.best(size + len(excluded)) if id not in excluded]
        new = [id for id in most_visited[:size] if id not in known]
        chunks = self.chunks.chunks_by_id(new)
        return [chunk for chunk in chunks if matches(chunk, request.filters)]


def of_named_source(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, those in front of which the question names the document's title or the speaker of a turn.

    Of a site (or file) named by its address they are the only ones, where there is any: what another one says is no
    answer. A name counts as it is written, and a lone word in small letters is none. Scores fall as before: the first
    hit has the highest.

    >>> of_named_source("How do I leave honda.com?", [])
    []
    """
    words = [word.strip(_MARKS).removesuffix("'s") for word in question.split()]
    folded = {word.casefold() for word in words}
    of_site = [hit for hit in hits if "." in hit.chunk.title and hit.chunk.title.casefold() in folded]
    if of_site:
        return of_site

    behind_first = f" {' '.join(words[1:])} "
    by_name = sorted(hits, key=lambda hit: not any(f" {name} " in behind_first for name in _names_of(hit.chunk)))
    return [replace(hit, score=best.score) for hit, best in zip(by_name, hits, strict=True)]


def _names_of(chunk: Chunk) -> list[str]:
    """The title of the chunk's document without its brackets, and who speaks in it, if written as names."""
    title = chunk.title.partition(" (")[0]
    return [name for name in (title, *re.findall(_SPEAKER, chunk.text)) if name[:1].isupper()]


def _mixed_scores(ranking: Sequence[Hit], share_of_visits: Mapping[str, float], weight: float) -> dict[str, float]:
    """Mix each passage's share of the walk's visits with its score as a share of the best one.

    A passage that only the walk found counts with the lowest score of the ranking.
    """
    best = ranking[0].score
    score_of = {hit.chunk.id: hit.score / best for hit in ranking}
    lowest = score_of[ranking[-1].chunk.id]

    scores = {}
    for chunk_id, share in share_of_visits.items():
        base = score_of.get(chunk_id, lowest)
        scores[chunk_id] = weight * share**0.25 + (1 - weight) * base
    return scores


def graph_weight(scores: Sequence[float], most: float = AdaptiveOptions.pagerank) -> float:
    """The graph's say in a ranking with these scores, best first: 0 if they are flat, `most` where they fall off.

    0 as well if nothing scores above 0: there is no hit to start from.
    """
    if not scores or scores[0] <= 0:
        return 0.0
    shape = scores[min(DEPTH, len(scores)) - 1] / scores[0]
    return most * min(1.0, max(0.0, (FLAT - shape) / (FLAT - STEEP)))


def make_adaptive(space: Space, options: AdaptiveOptions) -> AdaptiveRetriever:
    own = asdict(options)
    retrieve = space.retriever("hybrid", weight=own.pop("weight"), okapi=own.pop("okapi"))
    return AdaptiveRetriever(retrieve, space.passage_graph, space.index, most=own.pop("pagerank"), **own)


ADAPTIVE = RetrieverSpec(
    "adaptive",
    "Words, meaning and the graph, each as far as the scores call for it: start here.",
    make_adaptive,
    "AdaptiveRetriever",
    AdaptiveOptions,
    needs_graph=True,
)
