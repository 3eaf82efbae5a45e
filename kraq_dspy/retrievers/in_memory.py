"""Holds a few texts and their embeddings in memory: retrieval without an index."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import dspy
import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.normalise import normalised_document
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.embedders.instructed import WeightedSentences
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.ports import Embedder, Filters, InstructedEmbedder, PrecomputedVectors, Vectors
from kraq_dspy.records import Chunk, Document, Question, content_id
from kraq_dspy.retrievers.hits import best_first, matches, named_for_agents
from kraq_dspy.retrievers.words_and_meaning import DENSE, DenseRetriever
from kraq_dspy.settings import ChunkSettings, EncoderSettings


class RecordsInMemory(SharedByCopies):
    """Chunks or questions with their embeddings, searched one by one: a `VectorSearch`, and the source of the records.

    Enough for some ten thousand; beyond that, make an index.
    """

    def __init__(self, records: Sequence[Chunk] | Sequence[Question], vectors: Vectors) -> None:
        self._records: Mapping[str, Any] = {record.id: record for record in records}
        self._ids = tuple(self._records)
        self._row = {id: row for row, id in enumerate(self._ids)}
        self._vectors = vectors

    def count(self) -> int:
        return len(self._ids)

    def vectors(self, ids: Sequence[str]) -> Vectors:
        rows: Vectors = self._vectors[[self._known(self._row, id) for id in ids]]
        return rows

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[list[tuple[str, float]]]:
        excluded = set(exclude)
        allowed = [
            id for id in self._ids if id not in excluded and (not filters or matches(self._records[id], filters))
        ]
        if not allowed:
            return [[] for _ in vectors]
        cosines = product(vectors, self.vectors(allowed).T)
        return [best_first(dict(zip(allowed, row.tolist(), strict=True)), k) for row in cosines]

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self._known(self._records, id) for id in ids]

    def questions_by_id(self, ids: Sequence[str]) -> list[Question]:
        return [self._known(self._records, id) for id in ids]

    def _known(self, by_id: Mapping[str, Any], id: str) -> Any:
        if id not in by_id:
            raise UnknownRecordError(f"There is no record {id!r} among the {len(self._ids)} in memory.")
        return by_id[id]


class PassagesSeen(SharedByCopies):
    """E(d|q) of some passages for some questions, in memory: a `ports.PrecomputedVectors`."""

    def __init__(self, questions: Sequence[str], chunks: Sequence[Chunk], embedder: InstructedEmbedder) -> None:
        self._row = {chunk.id: row for row, chunk in enumerate(chunks)}
        self._dimension = embedder.dimension
        passages = [chunk.passage for chunk in chunks]
        self._vectors = {given_question(each).id: embedder.encode(each, passages) for each in questions}

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        vectors = np.zeros((len(chunk_ids), self._dimension), np.float32)
        is_there = np.array([question_id in self._vectors and id in self._row for id in chunk_ids], np.bool_)
        for place in map(int, np.flatnonzero(is_there)):
            vectors[place] = self._vectors[question_id][self._row[chunk_ids[place]]]
        return vectors, is_there


class Corpus(SharedByCopies):
    """A few texts to retrieve from, in memory. `Corpus.from_texts` makes one.

    Args:
        documents: the documents.
        embedder: the encoder of passages and questions.
        settings: how to cut the documents into passages.

    `chunks` has the passages. `retriever` finds passages by meaning.

    >>> corpus = Corpus.from_texts(["The Rhine is a river.", "The Alps are mountains."])
    >>> corpus.retriever("Which rivers are there?", 1)[0].chunk.text
    'The Rhine is a river.'
    """

    def __init__(self, documents: Sequence[Document], embedder: Embedder, settings: ChunkSettings) -> None:
        self.embedder = embedder
        self.chunks = [chunk for document in documents for chunk in chunk_document(document, settings)]
        passages = [chunk.passage for chunk in self.chunks]
        vectors = embedder.encode_passages(passages) if passages else np.zeros((0, embedder.dimension), np.float32)
        records = RecordsInMemory(self.chunks, vectors)
        self.retriever = named_for_agents(DenseRetriever(records, records, embedder), DENSE.name, DENSE.help)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str | Document],
        *,
        embedder: EmbedderLike | None = None,
        settings: ChunkSettings | None = None,
    ) -> "Corpus":
        """Texts or documents, cut into chunks as an index would; by default with the packaged encoder.

        Args:
            texts: texts or `Document`s. A text is a document of its own, with its hash as id.
            embedder: a `kraq_dspy.extend.Embedder` or `dspy.Embedder` in place of the packaged encoder.
            settings: how texts are cut; by default as in an index.

        Returns:
            The corpus; its `retriever` finds passages by meaning.

        Raises:
            TypeError: if `texts` is one text, or holds anything but texts and documents.
        """
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            what = "one text" if isinstance(texts, str) else f"{texts!r:.60}"
            raise TypeError(f"texts is {what}; expected a list of texts or documents.")

        documents = []
        for text in texts:
            if not isinstance(text, str | Document):
                raise TypeError(f"texts holds {text!r:.60}, a {type(text).__name__}; expected texts or documents.")
            document = text if isinstance(text, Document) else Document(content_id("document", text), "", text)
            documents.append(normalised_document(document))
        return cls(documents, encoder_of(embedder), settings or ChunkSettings())

    def precomputed(
        self, questions: Sequence[str], embedder: "InstructedEmbedder | EmbedderLike | None" = None
    ) -> PrecomputedVectors:
        """Every passage as seen from every question, for `EfficientSpeculativeRAG`.

        `embedder` is the one that the program gets, by default the corpus's own (`as_instructed`).

        >>> corpus, questions = Corpus.from_texts(["Ada lived in London."]), ["Where did Ada live?"]
        >>> vectors, are_there = corpus.precomputed(questions).lookup("unknown", [corpus.chunks[0].id])
        >>> bool(are_there.any())
        False
        """
        return PassagesSeen(questions, self.chunks, as_instructed(embedder or self.embedder))


def given_question(text: str) -> Question:
    """The record of a question that is not an index's."""
    id = content_id("question", text)
    return Question(id, text, "given", community_id=None, level=-1, chunk_ids=(), document_ids=())


def as_instructed(embedder: InstructedEmbedder | EmbedderLike) -> InstructedEmbedder:
    """What embeds passages as seen from a question; a sentence encoder does so by weighing a passage's sentences.

    Raises TypeError for what is no encoder.
    """
    is_of_texts = isinstance(embedder, str | dspy.Embedder) or hasattr(embedder, "encode_queries")
    if hasattr(embedder, "encode") and not is_of_texts:
        return cast(InstructedEmbedder, embedder)
    return WeightedSentences(as_embedder(cast(EmbedderLike, embedder)))


def encoder_of(embedder: EmbedderLike | None) -> Embedder:
    """The packaged encoder if none is given."""
    return load_embedder(EncoderSettings()) if embedder is None else as_embedder(embedder)
