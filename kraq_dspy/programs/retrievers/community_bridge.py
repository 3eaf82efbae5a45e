"""Leads from passages to the others of their communities, without a model or a search.

A question with several steps names only the first of them, and the passages of the later ones do not resemble it. But
they share a community with those of the first. So the communities of the first passages are ordered by how near their
representative question is to the user's, and their other passages take the rest of the budget.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import islice

import numpy as np

from kraq_dspy._internal.options import require_counts, require_share
from kraq_dspy.ports import ChunkSource, CommunityMap, Embedder, Retriever, Vectors, VectorStore
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, best_first, falling, matches
from kraq_dspy.programs.shared.spec import RetrieverSpec, Space, option
from kraq_dspy.records import Hit, Question


class QuestionCommunities:
    """A `CommunityMap` in memory, from each community's chunk ids and the stored questions.

    A question that is marked as a duplicate is stood for by its original.
    """

    def __init__(self, chunk_ids: Mapping[str, Sequence[str]], questions: Iterable[Question]) -> None:
        self._chunk_ids = {community_id: tuple(ids) for community_id, ids in chunk_ids.items()}
        self._communities: dict[str, list[str]] = {}
        for community_id in sorted(self._chunk_ids):
            for chunk_id in dict.fromkeys(self._chunk_ids[community_id]):
                self._communities.setdefault(chunk_id, []).append(community_id)
        self._questions = {
            question.community_id: question.duplicate_of or question.id
            for question in questions
            if question.community_id is not None
        }

    def communities_of(self, chunk_ids: Sequence[str]) -> list[list[str]]:
        return [list(self._communities.get(chunk_id, ())) for chunk_id in chunk_ids]

    def chunk_ids(self, community_id: str) -> tuple[str, ...]:
        return self._chunk_ids[community_id]

    def question_id(self, community_id: str) -> str | None:
        return self._questions.get(community_id)


@dataclass(frozen=True)
class BridgeOptions:
    over: str = option("dense", "The retriever that finds the first passages.")
    share: float = option(0.7, "Of the budget that the first passages take.", least=0, most=1)
    n_communities: int = option(3, "Communities whose other passages follow.", least=1)


@dataclass(eq=False, repr=False)
class CommunityBridgeRetriever(Retrieving):
    """Spends the share `share` of the budget on `retrieve`, the rest on what its hits' communities hold.

    Of the communities of those first hits, the `n_communities` whose question is most similar to the user's are opened;
    their passages that are new, nearest to the question first, follow as `why` "bridge". Where they are too few,
    further hits of `retrieve` fill up. Communities without a question stay closed. `question_vectors` and
    `chunk_vectors` are the stores of the stored questions and of the chunks, both under `embedder`.

    The score of a bridged hit is its cosine to the question, but no more than that of the hit before it, so that
    scores fall although `retrieve` may have a scale of its own.

    Defaults from musique (`docs/decisions/retrieval.md`).
    """

    retrieve: Retriever
    communities: CommunityMap
    question_vectors: VectorStore
    chunk_vectors: VectorStore
    chunks: ChunkSource
    embedder: Embedder
    _: KW_ONLY
    share: float = 0.7
    n_communities: int = 3

    def __post_init__(self) -> None:
        require_share("the first hits' share of the budget", share=self.share)
        require_counts(n_communities=self.n_communities)
        self.retrieve = as_retriever(self.retrieve)

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k, vector = request.k, request.embedded_by(self.embedder)
        ranking = replace(request, vector=vector).send_to(self.retrieve)
        first = ranking[: math.ceil(self.share * k)]
        bridged = self._bridged(request, [hit.chunk.id for hit in first], vector)
        hits = [*first, *islice(bridged, k - len(first))]
        known = {hit.chunk.id for hit in hits}
        hits += [hit for hit in ranking if hit.chunk.id not in known][: k - len(hits)]
        return falling(hits)

    def _bridged(self, request: RetrievalRequest, first: Sequence[str], vector: Vectors) -> Iterator[Hit]:
        """What the communities of the `first` chunks hold besides them, nearest to the question first.

        A broad community may hold most of the corpus, so chunks are read as they are asked for.
        """
        known = {*request.exclude, *first}
        question_of: dict[str, str] = {}  # question id by community, of those that hold anything new
        for community_id in dict.fromkeys(
            c for communities in self.communities.communities_of(first) for c in communities
        ):
            question_id = self.communities.question_id(community_id)
            if question_id is not None and any(c not in known for c in self.communities.chunk_ids(community_id)):
                question_of[community_id] = question_id
        nearest = self._nearest(question_of, self.n_communities, vector)
        new = sorted({c for community_id in nearest for c in self.communities.chunk_ids(community_id)} - known)
        if not new:
            return
        cosines = self.chunk_vectors.vectors(new) @ vector
        in_order = np.lexsort((np.arange(len(new)), -cosines)).tolist()
        for start in range(0, len(in_order), request.k):
            some = [new[place] for place in in_order[start : start + request.k]]
            scores = cosines[in_order[start : start + request.k]].tolist()
            for chunk, score in zip(self.chunks.chunks_by_id(some), scores, strict=True):
                if matches(chunk, request.filters):
                    yield Hit(chunk, score, request.question, "bridge")

    def _nearest(self, question_of: Mapping[str, str], n: int, vector: Vectors) -> list[str]:
        """The `n` communities whose questions are most similar to `vector`."""
        if not question_of:
            return []
        question_ids = sorted(set(question_of.values()))
        similarity = dict(
            zip(question_ids, (self.question_vectors.vectors(question_ids) @ vector).tolist(), strict=True)
        )
        scored = {community_id: similarity[question_id] for community_id, question_id in question_of.items()}
        return [community_id for community_id, _ in best_first(scored, n)]


def make_bridge(space: Space, options: BridgeOptions) -> CommunityBridgeRetriever:
    return CommunityBridgeRetriever(
        space.retriever(options.over),
        space.communities,
        space.index.question_vectors,
        space.index.chunk_vectors,
        space.index,
        space.embedder,
        share=options.share,
        n_communities=options.n_communities,
    )


BRIDGE = RetrieverSpec(
    "bridge",
    "From the passages found to others of their communities.",
    make_bridge,
    "CommunityBridgeRetriever",
    BridgeOptions,
)
