"""Tests that a graph written for other tools is read back by them with all its attributes."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import networkx as nx
import pyarrow.parquet
import pytest

from kraq_dspy.asset.graph import parquet_tables
from kraq_dspy.asset.graph.networkx_view import to_networkx, write_graphml
from kraq_dspy.asset.graph.parquet_tables import write_parquet
from kraq_dspy.indexing.index.exchange import write_jsonl
from kraq_dspy.records import (
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    ExtractedEntity,
    Extraction,
    Finding,
    Question,
    Relationship,
    Summary,
)

R = TypeVar("R")

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


@dataclass(frozen=True)
class Given:
    """The records of each kind, where an index stands otherwise; none of a kind that is not named."""

    by_kind: Mapping[type[Any], Sequence[Any]]

    def all(self, kind: type[R], /) -> Iterable[R]:
        return iter(self.by_kind.get(kind, ()))


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
        write_jsonl(tmp_path / "entities.jsonl", broken())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.graphml"]


def test_every_record_is_a_line_of_json_with_its_fields(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "out" / "entities.jsonl", iter(ENTITIES))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[1] == {
        "id": "b", "name": "東京", "type": "", "description": "", "names": ["東京"], "chunk_ids": [], "degree": 1,
    }  # fmt: skip
    nested = write_jsonl(tmp_path / "e.jsonl", [Extraction("c", (ExtractedEntity("A", "t", "d"),))])
    assert json.loads(nested.read_text("utf-8"))["entities"] == [{"name": "A", "type": "t", "description": "d"}]


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
    path = write_jsonl(tmp_path / "entities.jsonl", [half])
    assert json.loads(path.read_text("utf-8"))["description"] == "half ? here"
    write_parquet(tmp_path, Given({Entity: [half]}))
    (row,) = pyarrow.parquet.read_table(tmp_path / "entities.parquet").to_pylist()
    assert (row["description"], row["names"]) == ("half ? here", ["Ann", "?"])


def test_the_tables_have_the_columns_of_graphrag_3(tmp_path: Path) -> None:
    question = Question("q", "Who knows Bob?", "kraq", "wide", 0, ("c1", "c2"), ("d",), "embedded")
    by_kind: dict[type, list[Any]] = {
        Document: [Document("d", "People", "Ann visits.", metadata={"creation_date": "2026-01-01"})],
        Chunk: [Chunk("c1", "d", 0, 0, 11, "Ann visits.", 3)],
        Entity: ENTITIES,
        Relationship: LINKS,
        Claim: CLAIMS,
        Community: COMMUNITIES[::-1],
        Summary: [Summary("wide", "People", "They visit.", (Finding("short", "long"),), "embedded")],
        Question: [question],
    }
    written = write_parquet(tmp_path / "out", Given(by_kind))
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    tables = {path.stem: pyarrow.parquet.read_table(path) for path in written}
    expected = {
        "entities": "title type description text_unit_ids frequency degree",
        "relationships": "source target description weight combined_degree text_unit_ids",
        "communities": "community level parent children title entity_ids relationship_ids text_unit_ids period size",
        "community_reports": "community level parent children title summary full_content rank rating_explanation "
        "findings full_content_json period size",
        "text_units": "text n_tokens document_id entity_ids relationship_ids covariate_ids",
        "documents": "title text text_unit_ids creation_date raw_data",
        "covariates": "covariate_type type description subject_id object_id status start_date end_date source_text "
        "text_unit_id",
    }
    for name, columns in expected.items():
        assert tables[name].column_names[:2] == ["id", "human_readable_id"], name
        assert set(columns.split()) <= set(tables[name].column_names), name
    rows = {name: table.to_pylist() for name, table in tables.items()}
    assert [(row["community"], row["parent"], row["children"]) for row in rows["communities"]] == [
        (0, -1, [1]), (1, 0, []),
    ]  # fmt: skip
    assert [row["combined_degree"] for row in rows["relationships"]] == [2, 2]
    assert rows["documents"][0]["text_unit_ids"] == ["c1"]
    assert rows["text_units"][0]["relationship_ids"] == ["r1"]
    assert rows["community_reports"][0]["findings"] == [{"summary": "short", "explanation": "long"}]
    assert [row["object_id"] for row in rows["covariates"]] == ["NONE", "Ann & <Bob>"]
    (row,) = rows["kraq_questions"]
    assert (row["text"], row["community"], row["text_unit_ids"]) == ("Who knows Bob?", 0, ["c1", "c2"])


def test_rows_are_written_some_at_a_time_and_numbered_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_tables, "_ROWS", 3)
    write_parquet(tmp_path, Given({Document: [Document(f"d{number}", "", "text") for number in range(5)]}))
    file = pyarrow.parquet.ParquetFile(tmp_path / "documents.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3, 2]
    assert file.read().column("human_readable_id").to_pylist() == [0, 1, 2, 3, 4]
