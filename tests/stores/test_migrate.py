"""Indexes of earlier versions, as they were made then, are opened and added to without a model being asked."""

import dataclasses
import json
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from kraq_dspy.cli.program import app
from kraq_dspy.errors import IndexLockedError, IndexStateError
from kraq_dspy.indexing.build import build_index
from kraq_dspy.indexing.change import add_documents
from kraq_dspy.indexing.check import check_index
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Community, Document, Entity, Extraction, Question, Relationship, Summary
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.lock import FileLock
from kraq_dspy.stores.manifest import SCHEMA_VERSION
from kraq_dspy.stores.migrate import MIGRATIONS

DATA = Path(__file__).resolve().parents[1] / "data"
KINDS = (Document, Chunk, Extraction, Entity, Relationship, Community, Summary, Question)
OLD = ("schema-1-first.kraq", "schema-1-last.kraq")


class Letters:
    """Counts of letters."""

    name, dimension = "letters", 26

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        counts = [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts]
        rows: Vectors = np.array(counts, np.float32).reshape(-1, 26)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    encode_queries = encode_passages


def documents() -> list[Document]:
    return [Document(**json.loads(line)) for line in (DATA / "corpus.jsonl").read_text().splitlines()]


def state(path: Path) -> dict[str, Any]:
    with Index.open(path) as index:
        held: dict[str, Any] = {kind.__name__: sorted(map(repr, index.all(kind))) for kind in KINDS}
        for name, store in (("chunks", index.chunk_vectors), ("questions", index.question_vectors)):
            ids = sorted(store.ids())
            held[name] = dict(zip(ids, store.vectors(ids).round(5).tolist(), strict=True))
            held[f"words of {name}"] = [(one, round(score, 4)) for one, score in store.search_text("babbage", 9)]
        held["results"] = [index.results.count(stage) for stage in ("extract", "summarize", "ask")]
        held["usage"] = index.results.usage()
        return held


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index of schema version 1."""
    with tarfile.open(DATA / "schema-1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert json.loads((tmp_path / request.param / "manifest.json").read_text())["schema_version"] == 1
    return tmp_path / str(request.param)


def test_an_old_index_holds_what_a_new_one_of_the_same_documents_does(old: Path, tmp_path: Path) -> None:
    (old / "raptor.json").write_text("{}")
    build_index(documents(), tmp_path / "new.kraq", embedder=Letters())

    migrated, new = state(old), state(tmp_path / "new.kraq")

    for name in ("Document", "Chunk", "chunks", "words of chunks", "results"):
        assert migrated[name] == new[name]
    assert {len(migrated[kind.__name__]) for kind in KINDS} == {len(new[kind.__name__]) for kind in KINDS}
    assert check_index(old).whole
    assert sorted(path.name for path in old.iterdir()) == ["lock", "manifest.json", "states"]
    assert (old / "states" / "1" / "raptor.json").is_file()


@pytest.mark.parametrize("old", OLD[1:], indirect=True)  # the first one's programs had other instructions
def test_nothing_is_asked_again_when_an_old_index_is_added_to(old: Path) -> None:
    before = state(old)

    report = add_documents(old, [Document("flowers", "Flowers", "Tommy Flowers built Colossus.")], embedder=Letters())

    assert report.usage["extract"].calls <= 2  # of the new document: extraction, and what was missed
    assert set(before["chunks"]) < set(state(old)["chunks"])


def test_a_migration_that_is_killed_is_done_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(old, old.with_name("undisturbed"))
    expected = state(old.with_name("undisturbed"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("kraq_dspy.stores.states.publish", killed)
        with pytest.raises(KeyboardInterrupt):
            Index.open(old)

    assert state(old) == expected


@pytest.mark.parametrize("old", OLD[1:], indirect=True)  # the first one's programs had other instructions
def test_an_unfinished_old_index_is_gone_on_with(old: Path) -> None:
    manifest = json.loads((old / "manifest.json").read_text())
    (old / "manifest.json").write_text(json.dumps({**manifest, "complete": False}))

    report = build_index(documents(), old, embedder=Letters())

    calls = {stage: usage.calls for stage, usage in report.usage.items() if usage.calls}
    assert calls == {"ask": report.counts["summaries"]}  # questions have another instruction since
    with Index.open(old) as index:
        assert (index.manifest.complete, index.manifest.state) == (True, "1")


def test_kraq_migrate_says_what_it_did_and_does_it_once(old: Path) -> None:
    shutil.copytree(old, old / "k2rag.kraq")  # an index in the index

    first, second = (CliRunner().invoke(app, ["migrate", str(old)]) for _ in range(2))

    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert f"schema version {SCHEMA_VERSION} now (it had 1); no model was asked" in " ".join(first.output.split())
    assert "already" in second.output
    assert json.loads((old / "k2rag.kraq" / "manifest.json").read_text())["schema_version"] == SCHEMA_VERSION


def test_an_old_index_that_cannot_be_written_says_to_copy_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: FileLock) -> None:
        raise IndexStateError("Permission denied")

    monkeypatch.setattr(FileLock, "acquire", refuse)

    with pytest.raises(IndexStateError, match=r"schema version 1 .*Copy it .*kraq migrate COPY"):
        Index.open(old)


def test_an_old_index_that_another_process_has_is_left_alone(old: Path) -> None:
    lock = FileLock(old / "lock")
    lock.acquire()
    with pytest.raises(IndexLockedError, match="being changed by"):
        Index.open(old)
    lock.release()


def test_there_is_a_way_from_every_earlier_version() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
    assert all((DATA / f"schema-{version}.tar.xz").is_file() for version in MIGRATIONS)


def test_the_manifest_of_today_is_the_one_of_this_schema_version() -> None:
    """A field that comes or goes changes the schema: raise SCHEMA_VERSION, add a migration, and a tiny index."""
    from kraq_dspy.stores.manifest import Manifest

    assert SCHEMA_VERSION == 2
    assert [field.name for field in dataclasses.fields(Manifest)] == [
        "schema_version", "settings", "encoder_name", "encoder_dimension", "created_at", "updated_at", "complete",
        "models", "library_version", "proxy", "origin", "state",
    ]  # fmt: skip
