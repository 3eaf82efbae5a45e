"""Declares the seams: what the programs need of encoders, stores and retrievers, and nothing more."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.records import Chunk, Community, Entity, Hit, Question, QuestionHit, Relationship, Summary

Vectors = NDArray[np.float32]
Filters = Mapping[str, Any]
"""Conditions on a chunk's metadata: equal to a value, or one of a list of values. "document_id" is always there."""


class Embedder(Protocol):
    """Turns text into vectors whose dot product is their similarity.

    [question] = embedder.encode_queries(["Who wrote Don Juan?"])
    scores = embedder.encode_passages(passages) @ question
    """

    @property
    def name(self) -> str:
        """Identifies the model, its prefixes and its precision: vectors under different names must not be mixed."""

    @property
    def dimension(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """float32 `[n_texts, dimension]`, rows L2-normalised."""

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """float32 `[n_texts, dimension]`, rows L2-normalised."""


class InstructedEmbedder(Protocol):
    """Embeds passages as seen from a question: E(d|q) in the papers."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""


class PrecomputedVectors(Protocol):
    """Holds E(d|q) of passages that were embedded in advance."""

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """float32 `[n_chunks, dimension]`, rows L2-normalised, and which were found; the others are zero."""


@runtime_checkable
class SentenceVectors(Protocol):
    """Holds the vectors of passages' sentences, from which E(d|q) of any question is computed."""

    def seen_from(self, question: str, chunks: Sequence[Chunk]) -> tuple[Vectors, NDArray[np.bool_]]:
        """float32 `[n_chunks, dimension]`, rows L2-normalised, and of which the sentences were stored; those of the
        others are read now."""


class VectorSearch(Protocol):
    """Embeddings by id, found by vector. Safe for threads.

    [scored] = search.search(embedder.encode_queries(["Who wrote Don Juan?"]), k=5)  # [(id, cosine), ...]
    """

    def count(self) -> int: ...

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """float32 `[n_ids, dimension]` in the order of `ids`. Raises UnknownRecordError."""

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[list[tuple[str, float]]]:
        """For each row of `vectors`, up to `k` (id, cosine), best first; ties by id."""


class VectorStore(VectorSearch, Protocol):
    """Points (id, vector, text, payload), found by vector or by words. Ids are `content_id` strings.

    Safe for threads. Of an embedded store, one process writes while any number read.

        store.upsert([content_id("a")], embedder.encode_passages(["Byron wrote it."]), ["Byron wrote it."])
        store.search_text("Byron", k=5)
    """

    @property
    def dimension(self) -> int: ...

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Write points; an id that is there is replaced. `texts` feed the BM25 index."""

    def delete(self, ids: Collection[str]) -> None: ...

    def ids(self) -> set[str]: ...

    def search_text(
        self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[tuple[str, float]]:
        """Up to `k` (id, BM25 score), best first; ties by id. Points without a common word are left out."""

    def close(self) -> None: ...


class ChunkSource(Protocol):
    """Looks chunks up by id; the index is one.

    [chunk] = index.chunks_by_id([hits[0].chunk.id])
    """

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """In the order of `ids`. Raises UnknownRecordError."""


class QuestionSource(Protocol):
    """Looks questions up by id; the index is one.

    [question] = index.questions_by_id([near.question.id])
    """

    def questions_by_id(self, ids: Sequence[str]) -> list[Question]:
        """In the order of `ids`. Raises UnknownRecordError."""


class Summariser(Protocol):
    """Says a text in fewer words. Safe for threads.

    summary = summarise("Don Juan is a poem of sixteen cantos ...", words=40)
    """

    @property
    def name(self) -> str: ...

    def __call__(self, text: str, words: int) -> str:
        """About `words` words. Raises ModelError."""


class Retriever(Protocol):
    """Finds chunks for a question.

        hits = retriever("Who wrote Don Juan?", k=5, filters={"document_id": ["byron", "juan"]})

    Contract (`tests/retrievers/test_contract.py`): at most `k` hits, best first, scores falling among
    the hits of one query, no chunk twice, none that is in `exclude` (chunk ids), all matching `filters`; fewer when
    there are fewer; the same answer to the same question; safe for threads. `k` below 1 or an empty question raises
    ValueError.
    """

    def __call__(
        self,
        question: str,
        k: int = 10,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        """`vector` is the question's embedding `[dimension]` where the caller has it; others ignore it."""


RetrieverLike: TypeAlias = Retriever | Callable[..., Any]
"""A retriever, or what `retrievers.as_retriever` makes one of: a function of a question, a `dspy.Retrieve`."""


class QuestionFinder(Protocol):
    """Finds the stored questions nearest to a text.

    for near in find("Who wrote Don Juan?", n=3):
        print(near.similarity, near.question.text)
    """

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        """Up to `n` that are not marked as duplicates, most similar first."""

    def encode(self, text: str) -> Vectors:
        """The embedding of a text among the stored questions, float32 `[dimension]`, L2-normalised."""

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        """The stored embeddings, float32 `[n, dimension]`."""


class Reranker(Protocol):
    """Judges passages that were found anew. Safe for threads; the same answer to the same input.

    scores = reranker("Who wrote Don Juan?", hits)
    """

    @property
    def name(self) -> str: ...

    def __call__(self, question: str, hits: Sequence[Hit], *, vector: Vectors | None = None) -> Sequence[float]:
        """One score for each hit, in their order; higher is better. `vector` is the question's embedding."""


class Progress(Protocol):
    """Told how a long run goes. The command line draws bars from it.

    progress.start("extract", total=200)
    progress.advance("extract")
    progress.finish("extract")
    """

    def start(self, stage: str, total: int | None) -> None: ...

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None: ...

    def finish(self, stage: str) -> None: ...


class SilentProgress:
    """Tells nobody."""

    def start(self, stage: str, total: int | None) -> None:
        return

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        return

    def finish(self, stage: str) -> None:
        return


class NearestTexts(Protocol):
    """Finds records by the embeddings of their texts.

    >>> from kraq_dspy import Workspace
    >>> len(Workspace.open("ada.kraq").entity_vectors("Where did Ada live?", 2))
    2
    """

    def __call__(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[str] = (),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[tuple[str, float]]:
        """Up to `k` (record id, cosine), best first; ties always in the same order."""


class GraphSource(ChunkSource, Protocol):
    """The graph of an index, by id.

    >>> from kraq_dspy import Workspace
    >>> len(Workspace.open("ada.kraq").graph.report_ids_at(0))
    1
    """

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """In the order of `ids`. Raises UnknownRecordError."""

    def links(self, entity_ids: Sequence[str]) -> list[Relationship]:
        """Every relationship with an end among `entity_ids`, once."""

    def community_of(self, entity_id: str, level: int) -> str | None:
        """The narrowest community of the entity, at `level` or broader, that has a report; None where none has."""

    def reports(self, community_ids: Sequence[str]) -> list[tuple[Community, Summary]]:
        """In the order of `community_ids`. Raises UnknownRecordError."""

    def report_ids_at(self, level: int) -> frozenset[str]:
        """The communities of the partition at `level` (its own, and the leaves above it) that have a report."""
