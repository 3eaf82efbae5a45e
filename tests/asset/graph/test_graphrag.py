"""Reads GraphRAG's output of versions 2 and 3, from parquet and from JSON lines, and writes it back."""

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from kraq_dspy import Index, add_documents, import_graphrag, remove_documents, resume_index, update_index
from kraq_dspy.asset.graph.communities import communities_at
from kraq_dspy.asset.graph.graphrag.read import ImportedGraphRAG, read_graphrag
from kraq_dspy.asset.graph.parquet_tables import write_parquet
from kraq_dspy.asset.graph.resolve import entity_id_of
from kraq_dspy.errors import ExchangeError, IndexStateError, ScopeError
from kraq_dspy.records import Document, Finding, Question, Summary, content_id
from kraq_dspy.settings import CorpusSettings, Settings
from tests.asset.graph.test_exports import Given
from tests.conftest import WarmShell

Tables = dict[str, list[dict[str, Any]]]

TEXT = "Ann knows Bob. Bob knows Cid. Dan is alone."


def small() -> Tables:
    """Ann, Bob and Cid in a community; Ann and Bob in one below it."""
    return {
        "documents": [{"id": "d", "title": "People", "text": TEXT, "creation_date": "2026-01-01"}],
        "text_units": [
            {"id": "u1", "text": "Ann knows Bob.", "document_id": "d"},
            {"id": "u2", "text": "Bob knows Cid. Dan is alone.", "document_id": "d"},
        ],
        "entities": [
            {"id": "e1", "title": "ANN", "type": "PERSON", "description": "Ann is tall.", "text_unit_ids": ["u1"]},
            {"id": "e2", "title": "BOB", "type": "PERSON", "description": "Bob.", "text_unit_ids": ["u1", "u2"]},
            {"id": "e3", "title": "CID", "type": "PERSON", "description": "", "text_unit_ids": ["u2"]},
            {"id": "e4", "title": "DAN", "type": "PERSON", "description": "", "text_unit_ids": ["u2"]},
        ],
        "relationships": [
            {"id": "r1", "source": "ANN", "target": "BOB", "description": "A", "weight": 3.0, "text_unit_ids": ["u1"]},
            {"id": "r2", "source": "BOB", "target": "CID", "description": "B", "weight": 1.0, "text_unit_ids": ["u2"]},
        ],
        "covariates": [
            {"id": "v1", "subject_id": "ANN", "object_id": "NONE", "description": "Ann sings.", "text_unit_id": "u1"},
            {"id": "v2", "subject_id": "ANN", "object_id": "BOB", "description": "Ann paid Bob.", "text_unit_id": "u1"},
        ],
        "communities": [
            {"id": "c0", "community": 0, "level": 0, "parent": -1, "entity_ids": ["e1", "e2", "e3"]},
            {"id": "c1", "community": 1, "level": 1, "parent": 0, "entity_ids": ["e1", "e2"]},
            {"id": "c2", "community": 2, "level": 1, "parent": 0, "entity_ids": ["e3"]},
        ],
        "community_reports": [
            {
                "id": "x",
                "community": number,
                "title": f"Title {number}",
                "summary": f"Summary {number}.",
                "findings": [{"summary": "short", "explanation": "long"}],
            }
            for number in (0, 1, 2)
        ],
    }


def save_jsonl(folder: Path, tables: Tables) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def save_parquet(folder: Path, tables: Tables) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        pa.parquet.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder


def records(imported: ImportedGraphRAG) -> dict[str, Any]:
    kinds = ("documents", "chunks", "entities", "relationships", "claims", "communities", "summaries")
    return {kind: getattr(imported, kind) for kind in kinds}


def given(imported: ImportedGraphRAG, questions: Sequence[Question] = ()) -> Given:
    by_kind = {type(each[0]): each for each in records(imported).values() if each}
    return Given({**by_kind, Question: questions})


def test_tables_become_records_with_our_ids(tmp_path: Path) -> None:
    imported = read_graphrag(save_parquet(tmp_path, small()))
    ann, bob, cid, dan = (entity_id_of(key) for key in ("ann", "bob", "cid", "dan"))
    first, second = imported.chunks
    assert [TEXT[chunk.start : chunk.end] for chunk in imported.chunks] == [first.text, second.text]
    assert [(chunk.document_id, chunk.position, chunk.title) for chunk in imported.chunks] == [
        ("d", 0, "People"), ("d", 1, "People"),
    ]  # fmt: skip
    assert imported.documents[0].metadata == {"creation_date": "2026-01-01"}
    entities = {entity.id: entity for entity in imported.entities}
    assert set(entities) == {ann, bob, cid, dan}
    assert (entities[bob].name, entities[bob].degree, entities[bob].chunk_ids) == ("BOB", 2, (first.id, second.id))
    links = {(link.source_id, link.target_id): link for link in imported.relationships}
    assert (links[ann, bob].weight, links[ann, bob].description, links[ann, bob].chunk_ids) == (3.0, "A", (first.id,))
    assert [(claim.entity_id, claim.statement, claim.chunk_id, claim.object_id) for claim in imported.claims] == [
        (ann, "Ann sings.", first.id, None),
        (ann, "Ann paid Bob.", first.id, bob),
    ]
    top = content_id("community", *sorted((ann, bob, cid)))
    assert [(c.level, len(c.entity_ids), c.parent_id) for c in imported.communities] == [
        (0, 3, None), (1, 2, top), (1, 1, top),
    ]  # fmt: skip
    assert imported.communities[0].chunk_ids == (first.id, second.id)
    assert imported.communities[2].chunk_ids == (second.id,)
    assert [len(imported.communities[0].child_ids), len(imported.communities[0].relationship_ids)] == [2, 2]
    summaries = {summary.community_id: summary for summary in imported.summaries}
    assert summaries[top].findings == (Finding("short", "long"),)
    assert (summaries[top].title, summaries[top].text, summaries[top].model) == ("Title 0", "Summary 0.", "graphrag")
    assert imported.problems == ("entities in no community, which levels leave out, as GraphRAG does: 1",)


def test_every_way_of_storing_the_same_tables_reads_the_same(tmp_path: Path) -> None:
    expected = read_graphrag(save_parquet(tmp_path / "plain", small()))
    project = tmp_path / "project"
    save_parquet(project / "output", small())
    assert read_graphrag(project) == expected
    assert read_graphrag(save_jsonl(tmp_path / "lines", small())) == expected


def test_faults_of_the_data_are_mended_and_counted(tmp_path: Path) -> None:
    tables = small()
    tables["entities"].append(
        {"id": "e5", "title": "Ann", "type": "", "description": "Ann is tall.", "text_unit_ids": []}
    )
    tables["entities"].append({"id": "e6", "title": " ", "type": "", "description": "", "text_unit_ids": []})
    tables["entities"][0]["text_unit_ids"] = ["u1", "gone"]
    tables["relationships"] += [
        {
            "id": "r3",
            "source": "ANN",
            "target": "EVE",
            "description": "Ann met Eve.",
            "weight": 1.0,
            "text_unit_ids": [],
        },
        {"id": "r4", "source": "ANN", "target": "Ann", "description": "", "weight": 1.0, "text_unit_ids": []},
        {"id": "r5", "source": "ANN", "target": "", "description": "", "weight": 1.0, "text_unit_ids": []},
        {"id": "r6", "source": "CID", "target": "DAN", "description": "", "weight": 0.0, "text_unit_ids": ["u2"]},
    ]
    tables["covariates"] += [
        {"id": "v2", "subject_id": "NONE", "description": "x", "text_unit_id": "u1"},
        {"id": "v3", "subject_id": "ANN", "description": "x", "text_unit_id": "gone"},
        {"id": "v4", "subject_id": "FAY", "description": "Fay runs.", "text_unit_id": "u2"},
        {"id": "v5", "subject_id": "ANN", "object_id": "GUS", "description": "Ann met Gus.", "text_unit_id": "u1"},
    ]
    tables["communities"][0]["entity_ids"].append("gone")
    tables["communities"] += [
        {"id": "c3", "community": 3, "level": 2, "parent": 1, "entity_ids": ["e1", "e2"]},
        {"id": "c4", "community": 4, "level": 3, "parent": 3, "entity_ids": ["e1"]},
        {"id": "c5", "community": 5, "level": 1, "parent": 0, "entity_ids": []},
    ]
    empty = {"id": "x", "title": "", "summary": "", "findings": None}
    tables["community_reports"] += [
        {**tables["community_reports"][0], "summary": "Again.", "findings": []},
        {**empty, "community": 99, "summary": "Of nothing."},
        {**empty, "community": 4},
    ]
    imported = read_graphrag(save_jsonl(tmp_path, tables))
    eve = next(entity for entity in imported.entities if entity.name == "EVE")
    assert (eve.type, eve.description, eve.degree) == ("", "Ann met Eve.", 1)
    assert [link.weight for link in imported.relationships if link.source_id == entity_id_of("cid")] == [1.0]
    assert Counter(community.level for community in imported.communities) == {0: 1, 1: 2, 2: 1}
    assert {len(c.entity_ids) for c in imported.communities if c.level == 2} == {
        1
    }  # GraphRAG's 4, moved below its holder
    assert imported.problems == (
        "claims of a text unit that does not exist, left out: 1",
        "claims without a subject or a description, left out: 1",
        "communities moved to the level below their parent's: 1",
        "communities with entities that none of their sub-communities has: 1",
        "communities with the same entities as a broader one, merged with it: 1",
        "communities without a report: 1",
        "communities without entities, left out: 1",
        "ends of relationships that were no entities, added as entities: 1",
        "entities in no community, which levels leave out, as GraphRAG does: 3",
        "entities with the normalised title of another one, merged with it: 1",
        "entities without a title, left out: 1",
        "objects of claims that were no entities, left out: 1",
        "references of communities to entities that do not exist, dropped: 1",
        "references to text units that do not exist, dropped: 1",
        "relationships of an entity with itself, left out: 1",
        "relationships without a positive weight, counted once: 1",
        "relationships without a source or a target, left out: 1",
        "reports about a community that does not exist, left out: 1",
        "reports about a community that has one already, of which the one with more findings was kept: 1",
        "reports without findings: 1",
        "reports without text, left out: 1",
        "subjects of claims that were no entities, added as entities: 1",
    )
    assert "Again." not in [summary.text for summary in imported.summaries]


def test_titles_that_are_merged_do_not_put_an_entity_into_two_communities_of_a_level(tmp_path: Path) -> None:
    tables = small()
    tables["entities"].append({"id": "e5", "title": "Cid's", "type": "", "description": "", "text_unit_ids": []})
    tables["communities"][1]["entity_ids"].append("e5")  # CID is in the other one
    imported = read_graphrag(save_parquet(tmp_path, tables))
    assert [len(community.entity_ids) for community in imported.communities] == [3, 2, 1]


def test_text_units_that_are_not_in_their_document_become_its_text(tmp_path: Path) -> None:
    tables = small()
    for row in tables["text_units"]:
        row["text"] = f"title: People.\n{row['text']}"
    imported = read_graphrag(save_parquet(tmp_path, tables))
    (document,) = imported.documents
    assert document.text == "\n\n".join(row["text"] for row in tables["text_units"])
    assert all(document.text[chunk.start : chunk.end] == chunk.text for chunk in imported.chunks)
    assert (
        "documents that do not contain their text units literally, their text put together from these: 1"
        in imported.problems
    )


def test_text_units_out_of_order_are_put_into_reading_order(tmp_path: Path) -> None:
    tables = small()
    tables["text_units"].reverse()
    assert read_graphrag(save_parquet(tmp_path / "a", tables)) == read_graphrag(save_parquet(tmp_path / "b", small()))


def test_missing_tables_and_columns_are_named_beside_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="no folder"):
        read_graphrag(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ExchangeError, match=r"no table 'entities'.*it has: nothing"):
        read_graphrag(tmp_path / "empty")
    tables = small()
    del tables["community_reports"]
    with pytest.raises(ExchangeError, match=r"is missing the table 'community_reports'; it has: .*'entities.parquet'"):
        read_graphrag(save_parquet(tmp_path / "lacks_table", tables))
    tables = small()
    for row in tables["relationships"]:
        row["to"] = row.pop("target")
    with pytest.raises(ExchangeError, match=r"'relationships.parquet' is missing the column 'target'; it has: .*'to'"):
        read_graphrag(save_parquet(tmp_path / "lacks_column", tables))
    tables = small()
    for row in tables["communities"]:
        del row["entity_ids"]
    with pytest.raises(ExchangeError, match=r"'communities.parquet' is missing the column 'entity_ids'"):
        read_graphrag(save_parquet(tmp_path / "lacks_members", tables))


def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path) -> None:
    save_jsonl(tmp_path, small())
    (tmp_path / "entities.jsonl.gz").write_bytes(gzip.compress(b'{"id": "1", "title": "A"}\n{oops\n'))
    with pytest.raises(ExchangeError, match=r"'entities.jsonl.gz' cannot be read: Line 2"):
        read_graphrag(tmp_path)


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    first = read_graphrag(save_parquet(tmp_path / "in", small()))
    written = write_parquet(tmp_path / "out", given(first))
    assert sorted(path.name for path in tmp_path.joinpath("out").iterdir()) == sorted(path.name for path in written)
    again = read_graphrag(tmp_path / "out")
    assert records(again) == records(first)


def test_labels_come_back_and_keep_an_import_from_everybody(tmp_path: Path, keyword_embedder: Any) -> None:
    tables = small()
    tables["documents"][0]["acl"] = ["staff"]
    imported = read_graphrag(save_jsonl(tmp_path / "labeled", tables))
    write_parquet(tmp_path / "exported", given(imported))

    import_graphrag(tmp_path / "exported", tmp_path / "i.kraq", embedder=keyword_embedder())

    assert [document.labels for document in read_graphrag(tmp_path / "exported").documents] == [("staff",)]
    with Index.open(tmp_path / "i.kraq") as index, pytest.raises(ScopeError):
        index.require_no_labels()


@pytest.mark.parametrize("by", ["column", "function"])
def test_an_import_takes_the_labels_that_it_is_told_of(tmp_path: Path, keyword_embedder: Any, by: str) -> None:
    """As a corpus does; a document of which nothing is said is for its owner."""
    tables = small()
    tables["documents"][0]["groups"] = "staff, board"
    tables["text_units"].append({"id": "u3", "text": "Eve is new.", "document_id": "of-no-table"})
    folder = save_jsonl(tmp_path / "tables", tables)
    own: dict[str, Any] = {"settings": Settings(corpus=CorpusSettings(acl_column="groups"))}
    if by == "function":
        own = {"labels": lambda document: ["board", "staff"] if document.text.startswith("Ann") else []}

    import_graphrag(folder, tmp_path / "i.kraq", embedder=keyword_embedder(), **own)

    with Index.open(tmp_path / "i.kraq") as index:
        assert sorted(index.labels().values()) == [("",), ("board", "staff")]


def test_labels_of_a_function_are_not_lost_when_an_import_is_resumed(tmp_path: Path, keyword_embedder: Any) -> None:
    folder, out = save_jsonl(tmp_path / "tables", small()), tmp_path / "i.kraq"

    def staff(document: Document) -> list[str]:
        return ["staff"]

    import_graphrag(folder, out, embedder=keyword_embedder(), labels=staff)
    with pytest.raises(IndexStateError, match=r"Go on in Python.*kraq_dspy\.resume_index\(.*labels=\.\.\.\)"):
        resume_index(out, embedder=keyword_embedder())
    with Index.open(out) as index:
        assert set(index.labels().values()) == {("staff",)}

    resume_index(out, embedder=keyword_embedder(), labels=staff)
    with Index.open(out) as index:
        assert set(index.labels().values()) == {("staff",)}


def test_the_command_takes_the_column_of_labels_by_its_name(tmp_path: Path, kraq: WarmShell) -> None:
    tables = small()
    tables["documents"][0]["groups"] = "staff"
    folder = save_jsonl(tmp_path / "tables", tables)

    done = kraq(
        "import", "graphrag", folder, "--acl-column", "groups", "-o", "i.kraq", "--lm", "embedded", cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    with Index.open(tmp_path / "i.kraq") as index:
        assert ("staff",) in index.labels().values()


def test_a_column_of_labels_that_the_tables_lack_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="groups"):
        read_graphrag(save_jsonl(tmp_path / "tables", small()), "groups")
    without = {name: rows for name, rows in small().items() if name != "documents"}
    with pytest.raises(ExchangeError, match="no table 'documents', so no column 'groups'"):
        read_graphrag(save_jsonl(tmp_path / "without", without), "groups")


@pytest.mark.parametrize(("acl", "labels"), [([], ()), (None, ("",)), ("", ("",)), ("staff", ("staff",))])
def test_a_document_whose_label_is_left_empty_is_for_nobody_as_in_a_corpus(
    tmp_path: Path, acl: Any, labels: tuple[str, ...]
) -> None:
    """An empty list is what an export without labels has."""
    tables = small()
    tables["documents"][0]["acl"] = acl
    assert read_graphrag(save_jsonl(tmp_path, tables)).documents[0].labels == labels


@pytest.mark.parametrize(
    ("name", "communities", "levels"),
    [
        ("christmas_carol", 122, {0: 23, 1: 65, 2: 32, 3: 2}),
        ("dulce", 22, {0: 4, 1: 13, 2: 5}),
        ("dulce_short", 10, {0: 7, 1: 3}),
        ("sengoku_ja", 365, {0: 35, 1: 203, 2: 125, 3: 2}),  # one of 366 repeats a broader one's entities
    ],
)
def test_real_runs_are_read_whole_and_survive_the_way_through_parquet(
    shared_data: Path, tmp_path: Path, name: str, communities: int, levels: dict[int, int]
) -> None:
    imported = read_graphrag(shared_data / f"graphrag_{name}")
    assert len(imported.communities) == len(imported.summaries) == communities
    assert Counter(community.level for community in imported.communities) == levels
    ids = {entity.id for entity in imported.entities}
    chunk_ids = {chunk.id for chunk in imported.chunks}
    assert all({link.source_id, link.target_id} <= ids for link in imported.relationships)
    assert all(set(entity.chunk_ids) <= chunk_ids for entity in imported.entities)
    assert all(set(link.chunk_ids) <= chunk_ids for link in imported.relationships)
    texts = {document.id: document.text for document in imported.documents}
    assert all(texts[chunk.document_id][chunk.start : chunk.end] == chunk.text for chunk in imported.chunks)
    widest = [id for community in communities_at(imported.communities, 0) for id in community.entity_ids]
    for level in levels:
        here = [id for community in communities_at(imported.communities, level) for id in community.entity_ids]
        assert len(here) == len(set(here))
        assert set(here) <= set(widest)
    write_parquet(tmp_path, given(imported))
    assert records(read_graphrag(tmp_path)) == records(imported)


def tables_of(source: Path) -> Tables:
    """The tables of a real run, under GraphRAG's own names."""
    names = {"corpus": "text_units", "claims": "covariates"}
    tables: Tables = {}
    for path in sorted(source.glob("*.jsonl.gz")):
        table = path.name.removesuffix(".jsonl.gz")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            tables[names.get(table, table)] = [json.loads(line) for line in lines]
    tables.pop("global_queries", None)
    return tables


def test_a_real_run_reads_the_same_from_parquet(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "graphrag_dulce"
    tables = tables_of(source)
    save_parquet(tmp_path / "graphrag_dulce" / "output", tables)
    from_parquet, from_lines = read_graphrag(tmp_path / "graphrag_dulce"), read_graphrag(source)
    # The name of the folder is the source of a document that has no other.
    assert records(from_parquet) == records(from_lines)


def test_one_command_imports_and_then_questions_and_ask_work(
    shared_data: Path, tmp_path: Path, kraq: WarmShell
) -> None:
    folder = save_parquet(tmp_path / "dulce", tables_of(shared_data / "graphrag_dulce"))
    done = kraq("import", "graphrag", folder, "--lm", "embedded", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    questions = kraq("questions", "dulce.kraq", "--json", cwd=tmp_path)
    assert len(json.loads(questions.stdout)) > 10
    answer = kraq("ask", "dulce.kraq", "Who leads the Paranormal Military Squad?", "--json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["answer"]
    check = kraq("check", "dulce.kraq", cwd=tmp_path)
    assert check.returncode == 0, check.stdout + check.stderr
    graph = kraq("ask", "dulce.kraq", "Who leads the squad?", "--program", "graph-local", "--json", cwd=tmp_path)
    assert graph.returncode == 0, graph.stderr


def test_reports_become_summaries_and_each_has_its_question(tmp_path: Path, keyword_embedder: Any) -> None:
    folder = save_parquet(tmp_path / "in", small())
    embedder = keyword_embedder("ann", "bob", "cid")
    report = import_graphrag(folder, tmp_path / "small.kraq", embedder=embedder)
    assert report.counts["summaries"] == 3
    assert "extract" not in report.usage
    assert "summarize" not in report.usage
    with Index.open(tmp_path / "small.kraq") as index:
        summaries = {summary.community_id: summary for summary in index.all(Summary)}
        assert {summary.model for summary in summaries.values()} == {"graphrag"}
        assert {question.community_id for question in index.all(Question)} == set(summaries)


def test_an_import_is_gone_on_with_and_its_documents_are_changed_elsewhere(
    tmp_path: Path, keyword_embedder: Any
) -> None:
    folder, out = save_parquet(tmp_path / "in", small()), tmp_path / "small.kraq"
    embedder = keyword_embedder("ann", "bob", "cid")
    import_graphrag(folder, out, embedder=embedder)
    assert resume_index(out, embedder=embedder).counts["summaries"] == 3
    refusal = "imported from GraphRAG's output"
    with pytest.raises(IndexStateError, match=refusal):
        add_documents(out, ["Eve sings."], embedder=embedder)
    with pytest.raises(IndexStateError, match=refusal):
        remove_documents(out, ["d"], embedder=embedder)
    with pytest.raises(IndexStateError, match=refusal):
        update_index(out, ["Eve sings."], embedder=embedder)
    shutil.rmtree(folder)
    with pytest.raises(IndexStateError, match=r"which is not there\. Import it again"):
        resume_index(out, embedder=embedder)
