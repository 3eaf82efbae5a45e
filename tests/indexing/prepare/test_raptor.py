"""Makes trees over a real index of twelve passages about two things; the model names what it was shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.prepare.raptor import FILE, STAGE, TreeSettings, build_tree, open_tree
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.retrievers import RaptorRetriever
from kraq_dspy.settings import Settings
from tests.conftest import KeywordEmbedder
from tests.indexing.scripted import Models

SMALL = TreeSettings(cluster_tokens=36, min_nodes=2)
TEXTS = [f"river number {number}" for number in range(6)] + [f"castle number {number}" for number in range(6)]


def told() -> DummyLM:
    return DummyLM({"castle": {"summary": "all about a castle"}, "river": {"summary": "all about a river"}})


def chunk(text: str) -> Chunk:
    return Chunk(content_id("chunk", text), text, 0, 0, len(text), text, 3)


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("river", "castle")


@pytest.fixture
def index(tmp_path: Path, embedder: KeywordEmbedder) -> Iterator[Index]:
    with Index.create(
        tmp_path / "tree.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=embedder.dimension
    ) as index:
        chunks = [chunk(text) for text in TEXTS]
        index.add(chunks)
        index.chunk_vectors.upsert([one.id for one in chunks], embedder.encode_passages(TEXTS), TEXTS)
        yield index


def test_passages_that_are_alike_get_a_summary_and_summaries_one_above_them(
    index: Index, embedder: KeywordEmbedder
) -> None:
    report = build_tree(index, embedder, Models(told()), SMALL)
    tree, vectors = open_tree(index, embedder)
    first = [node for node in tree.nodes.values() if node.level == 1]
    assert (report["passages"], report["failures"], report["summaries"]) == (12, 0, len(tree.nodes))
    assert report["levels"] == max(node.level for node in tree.nodes.values()) >= 2
    for node in first:
        about = set(node.child_ids)
        rivers = {chunk(text).id for text in TEXTS[:6]}
        assert about <= rivers or not about & rivers  # no cluster mixes the two
        assert node.text == ("all about a river" if about <= rivers else "all about a castle")
    assert {child for node in first for child in node.child_ids} == {chunk(text).id for text in TEXTS}
    hits = RaptorRetriever(index, index.chunk_vectors, embedder, tree, vectors)("castle", 30)
    assert {"leaf", "summary"} == {hit.why for hit in hits}


def test_a_second_run_asks_nothing_and_makes_the_same_tree(index: Index, embedder: KeywordEmbedder) -> None:
    build_tree(index, embedder, Models(told()), SMALL)
    written = (index.home / FILE).read_text()
    again = build_tree(index, embedder, Models(DummyLM([])), SMALL)
    assert (again["calls"], again["failures"]) == (0, 0)
    assert json.loads((index.home / FILE).read_text())["nodes"] == json.loads(written)["nodes"]


def test_a_cluster_that_fails_is_left_out_and_tried_again(index: Index, embedder: KeywordEmbedder) -> None:
    unreadable = {"nothing": "of use"}
    partly = DummyLM(
        {"castle": {"summary": "all about a castle"}, "That cannot be read": unreadable, "river": unreadable}
    )
    report = build_tree(index, embedder, Models(partly), SMALL)
    tree, _ = open_tree(index, embedder)
    assert report["failures"] >= 1
    assert len(index.results.failures(STAGE)) == report["failures"]
    assert not {chunk(text).id for text in TEXTS[:6]} & {
        child for node in tree.nodes.values() for child in node.child_ids
    }
    assert build_tree(index, embedder, Models(told()), SMALL)["failures"] == 0
    assert index.results.failures(STAGE) == []


def test_without_a_tree_or_with_an_old_or_damaged_one_the_command_is_named(
    index: Index, embedder: KeywordEmbedder
) -> None:
    with pytest.raises(IndexStateError, match=r"no tree of summaries. Run: kraq precompute .*tree\.kraq raptor"):
        open_tree(index, embedder)
    build_tree(index, embedder, Models(told()), SMALL)
    index.add([chunk("river, and one more")])
    with pytest.raises(IndexStateError, match="has other passages than when its tree was made"):
        open_tree(index, embedder)
    (index.home / FILE).write_text("{")
    with pytest.raises(IndexStateError, match=r"is damaged .* raptor"):
        open_tree(index, embedder)


def test_an_index_without_passages_says_what_to_do(index: Index, embedder: KeywordEmbedder) -> None:
    index.replace(Chunk, [])
    with pytest.raises(IndexStateError, match="kraq index"):
        build_tree(index, embedder, Models(told()), SMALL)


def test_few_passages_make_a_tree_without_summaries(index: Index, embedder: KeywordEmbedder) -> None:
    report = build_tree(index, embedder, Models(DummyLM([])), TreeSettings(min_nodes=13))
    assert (report["summaries"], report["levels"]) == (0, 0)
    tree, vectors = open_tree(index, embedder)
    hits = RaptorRetriever(index, index.chunk_vectors, embedder, tree, vectors)("castle", 6)
    assert [hit.why for hit in hits] == ["leaf"] * 6
