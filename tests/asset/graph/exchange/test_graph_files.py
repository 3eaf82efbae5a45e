import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pyarrow.parquet
import pytest

from kraq_dspy.asset.graph.exchange.graphrag_out import write_graphrag
from kraq_dspy.asset.graph.networkx_view import to_networkx, write_graphml
from kraq_dspy.build.index.exchange import write_jsonl
from kraq_dspy.records import Claim, Community, Entity, ExtractedEntity, Extraction, Relationship
from tests.asset.graph.exchange.given import Given

ENTITIES = [
    Entity("a", "Ann & <Bob>", "person", 'Says "hi"\x00\x0b 🎻', ("Ann & <Bob>", "Ann"), ("c1", "c2"), 1),
    Entity("b", "東京", "", "", ("東京",), (), 1),
]
LINKS = [
    Relationship("r1", "a", "b", "visits", "Ann visits.", 2.5, ("c1",)),
    Relationship("r2", "a", "b", "likes", "", 1.0, ()),
]
COMMUNITIES = [
    Community("deep", 1, "wide", (), ("a",), (), ()),
    Community("wide", 0, None, ("deep",), ("a", "b"), ("r1", "r2"), ()),
]


CLAIMS = [Claim("k", "a", "Ann sings.", "c1"), Claim("l", "b", "東京 amazes Ann.", "c1", "a")]


def test_networkx_reads_the_graphml_back_with_every_attribute(tmp_path: Path) -> None:
    path = write_graphml(tmp_path / "new" / "graph.graphml", ENTITIES, LINKS, COMMUNITIES, CLAIMS)
    graph = nx.read_graphml(path, force_multigraph=True)
    assert graph.is_directed()
    assert graph.nodes["a"] == {
        "name": "Ann & <Bob>",
        "type": "person",
        "description": 'Says "hi" 🎻',
        "names": "Ann & <Bob> | Ann",
        "degree": 1,
        "chunk_ids": "c1 | c2",
        "community": "deep",
        "communities": "wide | deep",
        "claims": "Ann sings.",
    }
    assert graph.nodes["b"] == {
        "name": "東京",
        "names": "東京",
        "degree": 1,
        "community": "wide",
        "communities": "wide",
        "claims": "東京 amazes Ann.",
    }
    assert graph.edges["a", "b", "r1"] == {
        "predicate": "visits", "description": "Ann visits.", "weight": 2.5, "chunk_ids": "c1",
        "claims": "東京 amazes Ann.",
    }  # fmt: skip
    assert graph.number_of_edges() == 2


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write_graphml(tmp_path / "graph.graphml", ENTITIES, LINKS)
    before = path.read_bytes()

    def broken() -> Iterator[Entity]:
        yield ENTITIES[0]
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError):
        write_graphml(path, broken(), LINKS)
    with pytest.raises(RuntimeError):
        write_jsonl(tmp_path / "entities.jsonl", Entity, broken())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.graphml"]


def test_every_record_is_a_line_of_json_with_its_fields(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "out" / "entities.jsonl", Entity, iter(ENTITIES))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[1] == {
        "id": "b", "name": "東京", "type": "", "description": "", "names": ["東京"], "chunk_ids": [], "degree": 1,
    }  # fmt: skip
    nested = write_jsonl(tmp_path / "e.jsonl", Extraction, [Extraction("c", (ExtractedEntity("A", "t", "d"),))])
    assert json.loads(nested.read_text("utf-8"))["entities"] == [{"name": "A", "type": "t", "description": "d"}]


def test_a_record_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no Entity"):
        write_jsonl(tmp_path / "entities.jsonl", Entity, LINKS)


def test_networkx_has_the_records_as_attributes() -> None:
    graph = to_networkx(ENTITIES, LINKS, CLAIMS, COMMUNITIES)
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.nodes["a"]["claims"] == ("Ann sings.",)
    assert graph.nodes["a"]["communities"] == ("wide", "deep")
    assert graph.nodes["b"]["claims"] == ("東京 amazes Ann.",)
    assert graph.edges["a", "b", "r1"] == {
        "predicate": "visits", "description": "Ann visits.", "weight": 2.5, "chunk_ids": ("c1",),
        "claims": ("東京 amazes Ann.",),
    }  # fmt: skip
    assert sorted(graph["a"]["b"]) == ["r1", "r2"]


def test_half_characters_do_not_stop_an_export(tmp_path: Path) -> None:
    half = replace(ENTITIES[0], description="half \ud83d here", names=("Ann", "\ud83d"))
    write_graphml(tmp_path / "graph.graphml", [half], [])
    assert nx.read_graphml(tmp_path / "graph.graphml").nodes["a"]["description"] == "half  here"
    path = write_jsonl(tmp_path / "entities.jsonl", Entity, [half])
    assert json.loads(path.read_text("utf-8"))["description"] == "half ? here"
    write_graphrag(tmp_path, Given({Entity: [half]}))
    (row,) = pyarrow.parquet.read_table(tmp_path / "entities.parquet").to_pylist()
    assert (row["description"], row["names"]) == ("half ? here", ["Ann", "?"])
