"""Tests that broad communities come with all their parts, and that documents and chunks are found by their ids."""

from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.records import Chunk, Community, Document, Extraction, content_id
from kraq_dspy.settings import Settings


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.create(tmp_path / "i.kraq", Settings(), encoder_name="none", encoder_dimension=1)


def test_a_family_is_a_broad_community_with_all_its_parts(index: Index) -> None:
    def community(id: str, level: int, parent: str | None, members: str, parts: str = "") -> Community:
        return Community(id, level, parent, tuple(parts), tuple(members), (), ())

    all_of_them = [
        community("p", 0, None, "abcd", "qr"), community("x", 0, None, "e"), community("y", 0, None, "f"),
        community("q", 1, "p", "abc", "s"), community("r", 1, "p", "d"), community("s", 2, "q", "ab"),
    ]  # fmt: skip
    index.replace(Community, all_of_them)
    assert [each.id for each in index.families({"d", "nobody"})] == ["p", "q", "r", "s"]
    assert [each.id for each in index.families({"e", "a"})] == ["p", "x", "q", "r", "s"]
    assert [each.id for each in index.families({"nobody"})] == ["y"]
    assert index.community_sizes()[:2] == [(0, 4, "p"), (0, 1, "x")]


def test_documents_and_chunks_are_looked_up_and_removed_by_their_ids(index: Index) -> None:
    documents = [Document(id, id, "text") for id in ("b", "a", "caf\udce9")]
    chunks = [Chunk(content_id(each.id, str(at)), each.id, at, 0, 4, "text", 1) for each in documents for at in (1, 0)]
    index.add(documents)
    index.add(chunks)
    index.add([Extraction(chunks[0].id), Extraction(chunks[1].id)])
    assert index.known(Document, ["a", "x", "caf\udce9"]) == {"a", "caf\udce9"}
    assert index.documents_of([chunks[0].id, chunks[5].id, "x"]) == {chunks[0].id: "b", chunks[5].id: "caf\udce9"}
    expected = [chunks[number].id for number in (3, 2, 1, 0)]
    assert list(index.reading_order(["b", "a"])) == expected == list(index.reading_order())[:4]
    assert index.ids(Chunk, without=Extraction) == [chunk.id for chunk in chunks[2:]]

    index.remove(["b"], [chunks[0].id, chunks[1].id])
    assert index.ids(Document) == ["a", "caf\udce9"]
    assert index.ids(Chunk) == [chunk.id for chunk in chunks[2:]]
    assert index.ids(Extraction) == []
