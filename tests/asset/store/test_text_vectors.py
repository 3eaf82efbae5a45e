"""Keeps texts of records in a real vector store; the encoder counts what it is given."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.prepare.graph import embed_graph
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import Settings
from tests.conftest import KeywordEmbedder

TEXTS = {"r": "a river", "b": "a bridge", "rb": "a river and a bridge"}


class Counting:
    """Passes texts on to the keyword embedder and keeps them."""

    def __init__(self, embedder: KeywordEmbedder) -> None:
        self.embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        self.embedded: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows: Vectors = self.embedder.encode_queries(texts)
        return rows

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return self.encode_queries(texts)


def test_only_what_is_missing_or_changed_is_embedded_and_what_is_gone_goes(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    embedder = Counting(keyword_embedder("river", "bridge"))
    store = LocalVectorStore(tmp_path / "vectors", embedder.dimension)
    assert TextVectors(store, embedder, TEXTS).sync("embed") == 3
    changed = {"r": "a river", "b": "no bridge at all, a river"}
    vectors = TextVectors(store, embedder, changed)
    assert vectors.sync("embed") == 1
    assert embedder.embedded == [*TEXTS.values(), "no bridge at all, a river"]
    assert store.count() == 2
    assert [record_id for record_id, _ in vectors("river", 9)] == ["r", "b"]
    assert [record_id for record_id, _ in vectors("river", 9, exclude=["r", "unknown"])] == ["b"]
    store.close()


def test_filters_ask_about_payloads(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder("river", "bridge")
    store = LocalVectorStore(tmp_path / "vectors", embedder.dimension)
    vectors = TextVectors(store, embedder, TEXTS, {"r": {"level": 0}, "rb": {"level": 1}})
    vectors.sync("embed")
    assert [record_id for record_id, _ in vectors("river", 9, filters={"level": 1})] == ["rb"]
    store.close()


def test_an_index_without_a_graph_says_what_to_do(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder("river")
    with (
        Index.create(
            tmp_path / "a.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=embedder.dimension
        ) as index,
        pytest.raises(IndexStateError, match=r"no entities to search\. Finish the build: kraq index"),
    ):
        embed_graph(index, embedder)
