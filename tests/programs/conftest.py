"""Nine passages about rivers, bridges, castles and music in a real vector store: small enough to rank by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.ports import Embedder, VectorStore
from kraq_dspy.records import Chunk, Question, content_id
from tests.conftest import KeywordEmbedder

TEXTS = {
    "rhine": "The Rhine is a river.",
    "elbe": "The Elbe is a river with a bridge.",
    "span": "A bridge of stone.",
    "gate": "A bridge leads to the castle.",
    "keep": "The castle on the hill.",
    "hall": "Music in the castle.",
    "song": "Music for a choir.",
    "tune": "Music, more music, and a river.",
    "blank": "Nothing of note.",
}
QUESTIONS = {
    "about bridges": ("Which bridge is there?", None),
    "about castles": ("Which castle is there?", None),
    "castles again": ("Is there a castle?", "about castles"),
    "about music": ("What music is there?", None),
}


class Records:
    """Chunks and questions by id: what the programs need of an index."""

    def __init__(self, chunks: Sequence[Chunk], questions: Sequence[Question]) -> None:
        self.chunks = {chunk.id: chunk for chunk in chunks}
        self.questions = {question.id: question for question in questions}

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self.chunks[chunk_id] for chunk_id in ids]

    def questions_by_id(self, ids: Sequence[str]) -> list[Question]:
        return [self.questions[question_id] for question_id in ids]


@dataclass(frozen=True)
class Library:
    """The passages, by the short names above, and what retrievers need to search them."""

    records: Records
    chunk_vectors: VectorStore
    question_vectors: VectorStore
    embedder: Embedder

    def id(self, name: str) -> str:
        return content_id("chunk", name)

    def names(self, hits: Sequence[Any]) -> list[str]:
        return [hit.chunk.title for hit in hits]


@pytest.fixture
def library(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[Library]:
    embedder = keyword_embedder("river", "bridge", "castle", "music")
    chunks = [
        Chunk(content_id("chunk", name), f"doc-{name[0]}", 0, 0, len(text), text, 5, title=name)
        for name, text in TEXTS.items()
    ]
    questions = [
        Question(
            content_id("question", name),
            text,
            "kraq",
            community_id=name,
            level=0,
            chunk_ids=(),
            document_ids=(),
            duplicate_of=content_id("question", original) if original else None,
        )
        for name, (text, original) in QUESTIONS.items()
    ]
    chunk_vectors = LocalVectorStore(tmp_path / "chunks", embedder.dimension)
    question_vectors = LocalVectorStore(tmp_path / "questions", embedder.dimension)
    passages = [chunk.passage for chunk in chunks]
    chunk_vectors.upsert(
        [chunk.id for chunk in chunks],
        embedder.encode_passages(passages),
        passages,
        [{"document_id": chunk.document_id} for chunk in chunks],
    )
    question_vectors.upsert(
        [question.id for question in questions], embedder.encode_queries([question.text for question in questions])
    )
    yield Library(Records(chunks, questions), chunk_vectors, question_vectors, embedder)
    chunk_vectors.close()
    question_vectors.close()
