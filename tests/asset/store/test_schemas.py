"""Indexes of the schema versions that were released stay readable; `schemas/make.py` makes those of the present."""

import shutil
from pathlib import Path

import pytest

from kraq_dspy import Scope, add_documents
from kraq_dspy.asset.store.manifest import LABELLED, READABLE
from kraq_dspy.errors import ScopeError
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.asset.store.schemas.make import EMBEDDER, HERE

KEPT = sorted(HERE.glob("schema-*.zip"))


def test_an_index_of_each_present_schema_is_kept() -> None:
    assert {f"schema-{version}.zip" for version in READABLE} <= {each.name for each in KEPT}
    assert all(each.stat().st_size < 50_000 for each in KEPT)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
def test_a_kept_index_is_whole_asked_and_changed(kept: Path, tmp_path: Path) -> None:
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


def test_a_kept_index_with_labels_is_asked_in_a_scope_alone(tmp_path: Path) -> None:
    shutil.unpack_archive(HERE / f"schema-{LABELLED}.zip", tmp_path)
    with Workspace.open(tmp_path / "poets.kraq", embedder=EMBEDDER) as space:
        with pytest.raises(ScopeError, match="who may read"):
            space.retriever("adaptive")
        public = space.scoped(Scope(["public"]))
        hits = public.retriever("adaptive")("Who wrote Don Juan?", 5)
        assert {hit.chunk.title for hit in hits} == {"Ada Lovelace"}
