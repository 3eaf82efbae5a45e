"""An index of a readable schema opens as it was kept; one of another schema is named, with the way to a new one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy import Scope, add_documents
from kraq_dspy.asset.store.manifest import LABELLED, READABLE, SCHEMA_VERSION, read_fields, write_fields
from kraq_dspy.errors import IndexStateError, ScopeError
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.asset.store.schemas.make import EMBEDDER, HERE

KEPT = sorted(HERE.glob("schema-*.zip"))


def test_an_index_of_each_readable_schema_is_kept() -> None:
    assert {f"schema-{version}.zip" for version in READABLE} <= {each.name for each in KEPT}
    assert all(each.stat().st_size < 50_000 for each in KEPT)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
def test_an_index_kept_of_this_schema_opens_is_asked_and_changed(kept: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(kept, tmp_path)
    path = tmp_path / "poets.kraq"
    assert check_index(path).problems == ()

    with Workspace.open(path, embedder=EMBEDDER) as opened:
        space = opened.scoped(Scope(["public", "family"])) if opened.has_labels else opened
        assert {each.title for each in space.index.all(Document)} == {"Ada Lovelace", "Lord Byron"}
        assert space.retriever("adaptive")("Who wrote Don Juan?", 1)[0].chunk.title == "Lord Byron"
        assert space.index.questions()

    labels = ("public",) if kept.stem == "schema-7" else ()
    report = add_documents(
        path, [Document("new", "Murray", "John Murray published Don Juan.", labels=labels)], embedder=EMBEDDER
    )
    assert (report.documents.added, report.failures) == (1, ())
    assert check_index(path).problems == ()


@pytest.mark.parametrize("command", [lambda path: Workspace.open(path, embedder=EMBEDDER), check_index])
def test_an_index_of_another_schema_is_named_and_made_again(command: Callable[[Path], object], tmp_path: Path) -> None:
    shutil.unpack_archive(HERE / f"schema-{SCHEMA_VERSION}.zip", tmp_path)
    path = tmp_path / "poets.kraq"
    write_fields(path, {**read_fields(path), "schema_version": SCHEMA_VERSION - 1, "library_version": "0.4"})
    with pytest.raises(
        IndexStateError, match=r"poets\.kraq.* schema version 5 \(kraq-dspy 0\.4\).*Index its corpus again"
    ):
        command(path)


def test_a_kept_index_with_labels_is_asked_in_a_scope_alone(tmp_path: Path) -> None:
    shutil.unpack_archive(HERE / f"schema-{LABELLED}.zip", tmp_path)
    with Workspace.open(tmp_path / "poets.kraq", embedder=EMBEDDER) as space:
        with pytest.raises(ScopeError):
            space.retriever("adaptive")
        public = space.scoped(Scope(["public"]))
        hits = public.retriever("adaptive")("Who wrote Don Juan?", 5)
        assert {hit.chunk.title for hit in hits} == {"Ada Lovelace"}
