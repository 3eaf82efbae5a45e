"""Tests that an index gives back what was stored, in its order, and names what it has not."""

import copy
import dataclasses
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store import tables
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError
from kraq_dspy.records import Chunk, Document, Entity, Failure, Question, Relationship, Summary, content_id
from kraq_dspy.settings import ChunkSettings, Settings
from tests.asset.store.indexes import chunk, community, current_home, make, question


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with make(tmp_path / "x.kraq") as index:
        yield index


# Records


def test_records_of_any_kind_come_back_in_the_order_in_which_they_came(index: Index) -> None:
    chunks = [chunk(name) for name in "cab"]
    index.add([*chunks, Document("d1", "T", "text", metadata={"year": 1999}), Summary("c1", "T", "text")])

    assert list(index.all(Chunk)) == chunks
    assert index.ids(Chunk) == [one.id for one in chunks]
    assert index.get(Document, ["d1"]) == [Document("d1", "T", "text", metadata={"year": 1999})]
    assert index.get(Summary, ["c1"]) == [Summary("c1", "T", "text")]
    assert index.count(Chunk) == 3


def test_a_record_that_is_added_again_is_replaced_in_its_place(index: Index) -> None:
    index.add([chunk("a"), chunk("b")])
    index.add([chunk("a", text="new")])

    assert [one.text for one in index.all(Chunk)] == ["new", "text"]


def test_records_are_looked_up_in_the_order_that_was_asked_for(index: Index) -> None:
    index.add(chunk(str(i)) for i in range(1200))
    chunk_ids = [content_id(str(i)) for i in (1100, 3, 3, 700)]

    assert [one.id for one in index.chunks_by_id(chunk_ids)] == chunk_ids
    assert len(index.chunks_by_id(index.ids(Chunk))) == 1200
    assert index.chunks_by_id([]) == []


def test_an_unknown_id_is_named(index: Index) -> None:
    with pytest.raises(UnknownRecordError, match="has no Question with the id 'nope'"):
        index.questions_by_id(["nope"])


def test_an_id_that_utf8_cannot_write_is_an_id_like_any_other(index: Index) -> None:
    index.add([Document("caf\udce9.txt", "T", "text"), Document("café.txt", "T", "other")])

    assert index.get(Document, ["caf\udce9.txt"])[0].text == "text"
    assert index.ids(Document) == ["caf\udce9.txt", "café.txt"]
    index.delete(Document, ["caf\udce9.txt"])
    assert index.ids(Document) == ["café.txt"]


def test_deleting_what_is_not_there_does_nothing(index: Index) -> None:
    index.add([chunk("a")])

    index.delete(Chunk, [content_id("a"), content_id("b")])
    index.delete(Chunk, [content_id("a")])

    assert index.count(Chunk) == 0


def test_replace_leaves_only_the_new_records_of_that_kind(index: Index) -> None:
    index.add([chunk("a"), question("q")])

    index.replace(Chunk, (one for one in [chunk("b")]))

    assert list(index.all(Chunk)) == [chunk("b")]
    assert index.count(Question) == 1


def test_a_source_that_breaks_half_way_changes_nothing(index: Index) -> None:
    index.add([chunk("a")])

    def broken() -> Iterator[Chunk]:
        yield chunk("b")
        raise RuntimeError("the loader broke")

    with pytest.raises(RuntimeError, match="the loader broke"):
        index.replace(Chunk, broken())

    assert list(index.all(Chunk)) == [chunk("a")]


def test_records_can_be_read_from_the_index_while_it_is_written(index: Index) -> None:
    index.add(chunk(str(i)) for i in range(1500))

    index.add(question(f"What is {one.id}?") for one in index.all(Chunk))

    assert index.count(Question) == 1500


def test_records_are_asked_for_by_column(index: Index) -> None:
    index.add([chunk("a", "d1"), chunk("b", "d2"), chunk("c", "d1")])

    assert list(index.all(Chunk, document_id="d1")) == [chunk("a", "d1"), chunk("c", "d1")]
    with pytest.raises(TypeError, match="cannot be asked for by 'text'"):
        index.all(Chunk, text="x")


def test_a_kind_that_an_index_does_not_keep_is_refused_by_name(index: Index) -> None:
    with pytest.raises(TypeError, match="keeps no str"):
        index.count(str)  # type: ignore[arg-type]


def test_failures_of_the_loader_and_of_the_stages_are_one_list(index: Index) -> None:
    index.add([Failure("load", "a.pdf", "encrypted")])
    index.results.fail("extract", "c1", "timeout")

    assert list(index.all(Failure)) == [Failure("load", "a.pdf", "encrypted"), Failure("extract", "c1", "timeout")]
    assert index.results.failures("load") == [Failure("load", "a.pdf", "encrypted")]


def test_questions_are_chosen_by_level_and_source_and_duplicates_only_on_request(index: Index) -> None:
    top, deep, twin, random = (
        question("top"),
        question("deep", 1),
        question("twin", 1, duplicate_of=content_id("deep")),
        question("random", -1, "random"),
    )
    index.add([top, deep, twin, random])

    assert index.questions() == [top, deep, random]
    assert index.questions(1) == [deep]
    assert index.questions(1, duplicates=True) == [deep, twin]
    assert index.questions(source="random") == [random]
    assert index.questions(0, source="random") == []


def test_the_communities_at_a_level_include_the_leaves_above_it(index: Index) -> None:
    index.add([community("split", 0, ("x", "y")), community("whole", 0), community("x", 1), community("y", 1)])

    assert [one.id for one in index.communities_at(0)] == ["split", "whole"]
    assert [one.id for one in index.communities_at(1)] == ["whole", "x", "y"]
    assert [one.id for one in index.communities_at(5)] == ["whole", "x", "y"]


def test_the_graph_carries_the_fields_of_entities_and_relationships(index: Index) -> None:
    index.add(
        [
            Entity("e1", "Ada", "person", "a mathematician", ("Ada",), ("k1",), 1),
            Entity("e2", "Babbage", "person", "an engineer", ("Babbage",), ("k1",), 1),
            Relationship("r1", "e1", "e2", "wrote to", "letters", 2.0, ("k1",)),
            Relationship("r2", "e1", "e2", "met", "at a party", 1.0, ("k1",)),
        ]
    )

    graph = index.graph()

    assert graph.nodes["e1"]["name"] == "Ada"
    assert sorted(graph.edges(keys=True)) == [("e1", "e2", "r1"), ("e1", "e2", "r2")]
    assert graph.edges["e1", "e2", "r1"]["weight"] == 2.0
    assert "source_id" not in graph.edges["e1", "e2", "r1"]


def test_counts_names_every_kind(index: Index) -> None:
    index.add([chunk("a"), Failure("load", "x", "empty")])

    counts = index.counts()

    assert (counts["chunks"], counts["failures"], counts["questions"]) == (1, 1, 0)
    assert len(counts) == 11


def test_a_complete_state_knows_its_numbers_and_what_is_being_written_is_counted(tmp_path: Path) -> None:
    with make(tmp_path / "x") as index:
        index.add([chunk("a"), community("c1", 0), community("c2", 1, ("c1",)), community("c3", 1)])
        index.update_manifest(complete=True)
    with Index.open(tmp_path / "x") as reader:
        assert (reader.counts()["chunks"], reader.partition_sizes(), reader.deepest_level()) == (1, {0: 1, 1: 3}, 1)
        with Index.open(tmp_path / "x", write=True) as writer:
            writer.add([chunk("b"), community("c4", 2)])
            with Index.open(tmp_path / "x", unfinished=True) as early:
                for changed in (writer, early):
                    assert (changed.counts()["chunks"], changed.deepest_level()) == (2, 2)
        assert (reader.counts()["chunks"], reader.deepest_level()) == (1, 1)
    with Index.open(tmp_path / "x") as reader:
        assert reader.counts()["chunks"] == 2


# The folder


def test_an_index_is_opened_again_with_all_that_it_held(tmp_path: Path) -> None:
    settings = Settings(chunks=ChunkSettings(tokens=100, overlap=0))
    with Index.create(tmp_path / "x", settings, encoder_name="keywords", encoder_dimension=2) as index:
        index.add([chunk("a")])
        index.chunk_vectors.upsert([content_id("a")], np.array([[0, 1]], np.float32), ["text"])
        index.update_manifest(complete=True, models={"extractor": "embedded"})
        created = index.manifest

    with Index.open(tmp_path / "x") as index:
        assert index.manifest == dataclasses.replace(created, state="1")
        assert (created.settings, created.complete, created.models) == (settings, True, {"extractor": "embedded"})
        assert created.updated_at > created.created_at
        assert list(index.all(Chunk)) == [chunk("a")]
        assert index.chunk_vectors.search(np.array([[0, 1]], np.float32), 1) == [[(content_id("a"), 1.0)]]


def test_an_index_is_not_created_over_another_or_over_foreign_files(tmp_path: Path) -> None:
    make(tmp_path / "x.kraq").close()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")

    with pytest.raises(IndexStateError, match="is an index already"):
        make(tmp_path / "x.kraq")
    with pytest.raises(IndexStateError, match=r"holds 'chapter1.txt'.*does not exist yet"):
        make(tmp_path / "thesis")
    with pytest.raises(IndexStateError, match="Choose another place"):
        make(tmp_path / "file")
    with pytest.raises(IndexStateError, match="Choose another place"):
        make(Path("/proc/x.kraq"))
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.txt"]


def test_what_a_killed_creation_left_is_replaced(tmp_path: Path) -> None:
    make(tmp_path / "x.kraq").close()
    (tmp_path / "x.kraq" / "manifest.json").unlink()  # written last
    (tmp_path / "x.kraq" / ".manifest.json.new").write_text("{")

    with pytest.raises(IndexStateError, match="is not an index"):
        Index.open(tmp_path / "x.kraq")
    with make(tmp_path / "x.kraq") as index:
        index.add([chunk("a")])
        assert index.count(Chunk) == 1


def test_a_damaged_index_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for name in ("absent", "garbage", "other"):
        make(tmp_path / name).close()
    databases = {name: current_home(tmp_path / name) / "index.db" for name in ("absent", "garbage", "other")}
    databases["absent"].unlink()
    databases["garbage"].write_bytes(b"garbage" * 1000)
    databases["other"].unlink()
    sqlite3.connect(databases["other"]).execute("CREATE TABLE x (y)").connection.close()

    with pytest.raises(IndexStateError, match=r"has no index.db.*index again"):
        Index.open(tmp_path / "absent", write=True)
    with pytest.raises(IndexStateError, match="database is damaged"):
        Index.open(tmp_path / "garbage", write=True)
    with pytest.raises(IndexStateError, match="is missing the tables chunks, claims"):
        Index.open(tmp_path / "other")
    with pytest.raises(IndexStateError, match=r"has no index.db"):  # the failed opening has let go of the lock
        Index.open(tmp_path / "absent", write=True)


def test_another_encoder_is_refused_with_both_names(index: Index, keyword_embedder: type) -> None:
    with pytest.raises(EncoderMismatchError, match=r"encoder 'keywords'.*is 'keywords\(cat\)'"):
        index.require_encoder(keyword_embedder("cat"))


def test_vectors_of_another_dimension_are_refused(tmp_path: Path) -> None:
    with make(tmp_path / "x.kraq") as index:
        index.chunk_vectors.upsert([content_id("a")], np.array([[0, 1]], np.float32))
        index.update_manifest(encoder_dimension=3)

    with Index.open(tmp_path / "x.kraq") as index, pytest.raises(EncoderMismatchError, match="2-dimensional"):
        _ = index.question_vectors, index.chunk_vectors


def test_an_index_opened_for_reading_cannot_be_changed(tmp_path: Path) -> None:
    make(tmp_path / "x.kraq").close()

    with Index.open(tmp_path / "x.kraq") as index:
        with pytest.raises(IndexStateError, match="opened for reading"):
            index.add([chunk("a")])
        with pytest.raises(IndexStateError, match="opened for reading"):
            index.update_manifest(complete=True)
        with pytest.raises(IndexStateError, match="opened for reading"):
            index.results.fail("extract", "c1", "x")


@pytest.mark.parametrize(("write", "reads"), [(False, 1), (True, 2)])
def test_a_reader_keeps_the_chunks_that_it_read_and_a_writer_reads_them_again(
    write: bool, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(tmp_path / "x.kraq") as made:
        made.add([chunk("a"), question("q")])
        made.update_manifest(complete=True)

    with Index.open(tmp_path / "x.kraq", write=write) as index:
        read: list[str] = []
        record_of = tables.record_of

        def counted(kind: type[Any], *row: Any) -> Any:
            read.append(kind.__name__)
            return record_of(kind, *row)

        monkeypatch.setattr(tables, "record_of", counted)
        ids = index.ids(Chunk)
        assert index.chunks_by_id(ids) == index.chunks_by_id(ids) == [chunk("a")]
        assert index.questions_by_id(index.ids(Question)) == index.questions_by_id(index.ids(Question))
        assert sorted(read) == reads * ["Chunk"] + reads * ["Question"]

    with pytest.raises(IndexStateError, match="closed"):
        index.chunks_by_id(ids)


def test_a_writer_sees_the_chunk_that_it_has_just_changed(index: Index) -> None:
    index.add([chunk("a")])
    assert [one.text for one in index.chunks_by_id(index.ids(Chunk))] == ["text"]
    index.add([chunk("a", text="new")])
    assert [one.text for one in index.chunks_by_id(index.ids(Chunk))] == ["new"]


def test_a_closed_index_says_so_and_closes_twice(tmp_path: Path) -> None:
    index = make(tmp_path / "x.kraq")
    stream = index.all(Chunk)
    index.close()
    index.close()

    for use in (lambda: index.count(Chunk), lambda: index.chunk_vectors, lambda: next(stream)):
        with pytest.raises(IndexStateError, match="closed"):
            use()


def test_a_reader_that_stopped_half_way_may_outlive_the_index(tmp_path: Path) -> None:
    index = make(tmp_path / "x.kraq")
    index.add(chunk(str(number)) for number in range(600))  # more than are read at once
    stopped, going_on = index.all(Chunk), index.all(Chunk)
    next(stopped), next(going_on)
    index.close()
    stopped.close()  # type: ignore[attr-defined]
    with pytest.raises(IndexStateError, match="closed while it was being read"):
        list(going_on)


def test_a_copied_program_shares_its_index(index: Index) -> None:
    assert copy.deepcopy({"index": index})["index"] is index


# Threads and processes


def test_sixteen_threads_read_whole_writes_while_one_writes(index: Index) -> None:
    done = threading.Event()

    def read() -> set[int]:
        states = set()
        while not done.is_set():
            states.add(len(list(index.all(Chunk))))
        return states

    with ThreadPoolExecutor(16) as pool:
        readers = [pool.submit(read) for _ in range(16)]
        for batch in range(10):
            index.add(chunk(f"{batch}-{i}") for i in range(100))
        done.set()
        states = set().union(*(reader.result() for reader in readers))

    assert states <= set(range(0, 1001, 100))
    assert index.count(Chunk) == 1000
