"""Declares the seams: what the programs need from encoders, stores, retrievers and an open
index."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.records import (
    AnswerEvidence,
    Chunk,
    Community,
    Entity,
    FaqEntry,
    Hit,
    QAPair,
    Question,
    QuestionHit,
    Record,
    Relationship,
    Summary,
)

if TYPE_CHECKING:
    import dspy

R = TypeVar("R", bound=Record)

Vectors = NDArray[np.float32]
Filters = Mapping[str, Any]
"""Conditions on a chunk's metadata: equal to a value, or one of a list of values. "document_id"
always works."""


class Embedder(Protocol):
    """Turns texts into vectors. The dot product of two vectors is the similarity of the texts.

    [question] = embedder.encode_queries(["Who wrote Don Juan?"]) scores = embedder.encode_passages(passages) @
    question
    """

    @property
    def name(self) -> str:
        """Name of the model, its prefixes and its precision: never mix vectors under different
        names."""

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


@runtime_checkable
class PrecomputedVectors(Protocol):
    """Holds E(d|q) of passages that were embedded in advance."""

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """Return float32 `[n_chunks, dimension]`, rows L2-normalised, and which it has; the
        others are zero."""


@runtime_checkable
class SentenceVectors(Protocol):
    """Holds the vectors of passages' sentences, from which E(d|q) of any question is computed."""

    def seen_from(self, question: str, chunks: Sequence[Chunk]) -> tuple[Vectors, NDArray[np.bool_]]:
        """Return float32 `[n_chunks, dimension]`, rows L2-normalised, and which chunks had
        stored sentences; the encoder reads the others now."""


class PromptScorer(Protocol):
    """Says how likely a language model finds given text; generates nothing."""

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        """Return the log-probabilities of the tokens of each segment, for each prompt (its segments
        in order).

        The scorer tokenises segments apart, so that their boundaries are exact. The first token of
        a prompt has no probability, so the first segment omits it. Raises ModelError.
        """


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
        """Find for each row of `vectors` up to `k` (id, cosine), best first; ties by id."""


class VectorStore(VectorSearch, Protocol):
    """Stores points (id, vector, text, payload), and finds points by vector or by words. Ids are `content_id`
    strings.

    Safe for threads. One process at a time may write to an embedded store; any number may read.

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
        """Write points, and replace existing ids. `texts` feed the BM25 index."""

    def delete(self, ids: Collection[str]) -> None: ...

    def ids(self) -> set[str]: ...

    def search_text(
        self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[tuple[str, float]]:
        """Return up to `k` (id, BM25 score), best first; ties by id. Points without a common
        word do not count."""

    def close(self) -> None: ...


class ChunkSource(Protocol):
    """Looks chunks up by id. An index is a chunk source.

    [chunk] = index.chunks_by_id([hits[0].chunk.id])
    """

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """Give the records in the order of `ids`. Raises UnknownRecordError."""


class QuestionSource(Protocol):
    """Looks questions up by id; the index is one.

    [question] = index.questions_by_id([near.question.id])
    """

    def questions_by_id(self, ids: Sequence[str]) -> list[Question]:
        """Give the records in the order of `ids`. Raises UnknownRecordError."""


class Summariser(Protocol):
    """Shortens a text. Safe for threads.

    summary = summarise("Don Juan is a poem of sixteen cantos ...", words=40)
    """

    @property
    def name(self) -> str: ...

    def __call__(self, text: str, words: int) -> str:
        """About `words` words. Raises ModelError."""


class Retriever(Protocol):
    """Finds chunks for a question.

        hits = retriever("Who wrote Don Juan?", k=5, filters={"document_id": ["byron", "juan"]})

    The contract (`tests/retrievers/test_contract.py`): a retriever returns at most `k` hits, best first, and fewer if
    there are fewer. Among the hits of one query, scores do not rise. No chunk comes twice. No hit is in `exclude`
    (chunk ids), and all hits match `filters`. The same question gets the same hits. A retriever is safe for threads.
    It raises ValueError for `k` below 1 and for an empty question.
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
        """Return up to `n` that are not marked as duplicates, most similar first."""

    def encode(self, text: str) -> Vectors:
        """The embedding of a text among the stored questions, float32 `[dimension]`, L2-normalised."""

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        """The stored embeddings, float32 `[n, dimension]`."""


class Reranker(Protocol):
    """Gives new scores to passages that a retriever found. Safe for threads. The same input gets the same scores.

    scores = reranker("Who wrote Don Juan?", hits)
    """

    @property
    def name(self) -> str: ...

    def __call__(self, question: str, hits: Sequence[Hit], *, vector: Vectors | None = None) -> Sequence[float]:
        """One score for each hit, in their order; higher is better. `vector` is the question's embedding."""


class Progress(Protocol):
    """Receives the progress of a long run. The command line draws bars from it.

    progress.start("extract", total=200) progress.advance("extract") progress.finish("extract")
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
        """Return up to `k` (record id, cosine), best first; ties always in the same order."""


class GraphSource(ChunkSource, Protocol):
    """The graph of an index, by id.

    >>> from kraq_dspy import Workspace
    >>> len(Workspace.open("ada.kraq").graph.report_ids_at(0))
    1
    """

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """Give the records in the order of `ids`. Raises UnknownRecordError."""

    def links(self, entity_ids: Sequence[str]) -> list[Relationship]:
        """Every relationship with an end among `entity_ids`, once."""

    def community_of(self, entity_id: str, level: int) -> str | None:
        """The narrowest community of the entity, at `level` or broader, that has a report; None if none has."""

    def reports(self, community_ids: Sequence[str]) -> list[tuple[Community, Summary]]:
        """Give the reports in the order of `community_ids`. Raises UnknownRecordError."""

    def report_ids_at(self, level: int) -> frozenset[str]:
        """The communities of the partition at `level` (its own, and the leaves above it) that have a report."""


class QAPairSource(Protocol):
    """Looks up question-answer pairs that kraq made from chunks in advance.

    >>> from kraq_dspy import Workspace
    >>> Workspace.open("ada.kraq").stored_pairs.pairs_of(["ada"])  # before `kraq precompute DIR qa-pairs`
    {}
    """

    def pairs_of(self, chunk_ids: Sequence[str]) -> dict[str, tuple[QAPair, ...]]:
        """Give the pairs by chunk id; a chunk whose pairs were not made is left out."""


class PreparedAnswers(Protocol):
    """The approved answers of an FAQ cache. Safe for threads.

    >>> from kraq_dspy import Workspace
    >>> Workspace.open("ada.kraq").answers.exact("Where did Ada live?") is None  # nothing was prepared
    True
    """

    def exact(self, question: str) -> FaqEntry | None:
        """The entry of the same question, case, spaces and final punctuation apart."""

    def entries(self) -> Sequence[FaqEntry]:
        """All, by number."""

    def nearest(self, question: str, k: int, similarity: float = 0.0) -> Sequence[FaqEntry]:
        """Return up to `k`, of the most similar questions, best first; with a `similarity` above 0
        those alone whose cosine is at least that."""

    def collect(self, question: str, answer: str, evidence: Sequence[AnswerEvidence], failure: str = "") -> None:
        """Note that a program failed at the question, and in which way (`qa_search.program.failure_of`)."""


class IndexView(ChunkSource, QuestionSource, Protocol):
    """The records of an index and their vectors, as far as they may be read: the whole, or a part of its documents with
    what was made of that part alone.

    >>> from kraq_dspy import Workspace
    >>> Workspace.open("ada.kraq").index.count(Entity)
    3
    """

    @property
    def chunk_vectors(self) -> VectorStore: ...

    @property
    def question_vectors(self) -> VectorStore: ...

    def all(self, kind: type[R], **equal: Any) -> Iterator[R]:
        """Every record of a kind, in the order of insertion; `equal` asks for the value of a column."""

    def get(self, kind: type[R], ids: Sequence[str]) -> list[R]:
        """Records in the order of `ids`. Raises UnknownRecordError."""

    def ids(self, kind: type[Record]) -> list[str]:
        """The ids of a kind, in the order of insertion."""

    def count(self, kind: type[Record]) -> int: ...

    def deepest_level(self) -> int:
        """The level of the narrowest communities; -1 if there are none."""


class Space(Protocol):
    """An open index, as programs and retrievers see it. A `Workspace` is a space.

    A space shows the whole index, or only the documents that a scope may read. A program that uses nothing else
    cannot read other documents. A method that needs a preparation raises IndexStateError, which names the command.

        def make_quoting(space: Space, retrieve: Retriever, options: QuotingOptions) -> QuotingRAG:
            return QuotingRAG(retrieve, space.questions())
    """

    @property
    def index(self) -> IndexView: ...

    @property
    def embedder(self) -> Embedder: ...

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        """A retriever by its name; the index's default without one."""

    def questions(self, source: str = "kraq") -> QuestionFinder:
        """Finds the index's questions nearest to a text; `source` "random" means those of the papers' baseline."""

    @property
    def asked_of(self) -> Mapping[str, Collection[str]]:
        """Which questions stand for the communities of a chunk, by its id."""

    @property
    def passage_graph(self) -> Any:
        """The `asset.graph.passage_graph.PassageGraph` of the passages and the entities that they name."""

    @property
    def graph(self) -> GraphSource: ...

    @property
    def entity_vectors(self) -> NearestTexts: ...

    @property
    def report_vectors(self) -> NearestTexts: ...

    @property
    def sentence_vectors(self) -> NearestTexts: ...

    @property
    def known_metadata(self) -> Any:
        """The `retrievers.metadata_filter.KnownMetadata` that a question can name."""

    @property
    def summary_tree(self) -> tuple[Any, NearestTexts]:
        """The `retrievers.raptor.SummaryTree` over the passages, and what finds its nodes."""

    @property
    def summarised(self) -> Any:
        """The `indexing.prepare.summarised_corpus.SummarisedCorpus`: the passages in fewer words, and their graph."""

    @property
    def answers(self) -> PreparedAnswers: ...

    @property
    def stored_pairs(self) -> QAPairSource: ...

    @property
    def instructed_embedder(self) -> InstructedEmbedder: ...

    def precomputed(self, source: str = "kraq") -> PrecomputedVectors | SentenceVectors:
        """Open what `kraq precompute DIR` stored for the questions of a source: "kraq" or "random"."""

    def shortener(self, share: float) -> "dspy.Module":
        """The step that puts a text in about `share` of its tokens: `shorten(text=...).shortened`."""

    def prompt_scorer(self, role: str) -> PromptScorer:
        """Says how likely the model of a role finds given text. Raises ModelError if it cannot."""

    def cross_encoder(self, model: str) -> Reranker:
        """A cross-encoder by a hub name or a folder."""
