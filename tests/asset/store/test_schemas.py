"""Indexes of the schema versions that were released stay readable; `schemas/make.py` makes one of the present."""

import shutil
from pathlib import Path

import pytest

from kraq_dspy.asset.store.manifest import SCHEMA_VERSION
from kraq_dspy.indexing.index.change import add_documents
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.asset.store.schemas.make import EMBEDDER, HERE

KEPT = sorted(HERE.glob("schema-*.zip"))


def test_an_index_of_the_present_schema_is_kept() -> None:
    assert f"schema-{SCHEMA_VERSION}.zip" in [each.name for each in KEPT]
    assert all(each.stat().st_size < 200_000 for each in KEPT)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
def test_a_kept_index_is_whole_asked_and_changed(kept: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(kept, tmp_path)
    path = tmp_path / "poets.kraq"
    assert check_index(path).problems == ()

    with Workspace.open(path, embedder=EMBEDDER) as space:
        assert {each.title for each in space.index.all(Document)} == {"Ada Lovelace", "Lord Byron"}
        assert space.retriever("adaptive")("Who wrote Don Juan?", 1)[0].chunk.title == "Lord Byron"
        assert space.index.questions()

    report = add_documents(path, [Document("new", "Murray", "John Murray published Don Juan.")], embedder=EMBEDDER)
    assert (report.documents.added, report.failures) == (1, ())
    assert check_index(path).problems == ()
