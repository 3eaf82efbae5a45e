"""Opens indexes that MiniLM made in one precision with settings that name another, or none."""

from pathlib import Path

import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import EncoderMismatchError
from kraq_dspy.indexing import build_index
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, Settings
from kraq_dspy.workspace import Workspace
from tests.kept import kept_index

DOCUMENTS = [
    Document("ada", "Ada Lovelace", "Ada Lovelace wrote the first program. She was a daughter of Lord Byron."),
    Document("mill", "The mill", "The mill at Nether Alderley is powered by water. It has an overshot wheel."),
]


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_precision_that_is_set_is_that_of_the_index_or_refused(tmp_path: Path, precision: str) -> None:
    kept_index(DOCUMENTS, tmp_path / "mill.kraq")
    settings = Settings(encoder=EncoderSettings(precision=precision))

    with pytest.raises(EncoderMismatchError, match=r"L6-v2 int8'.*the precision as it is there or left out"):
        Workspace.open(tmp_path / "mill.kraq", settings=settings)
    with pytest.raises(EncoderMismatchError, match=f"this one is 'all-MiniLM-L6-v2 {precision}'"):
        build_index(DOCUMENTS, tmp_path / "mill.kraq", settings=settings)


def test_an_index_keeps_its_precision_when_none_is_set(tmp_path: Path) -> None:
    path, settings = tmp_path / "mill.kraq", Settings(encoder=EncoderSettings(precision="fp32"))
    kept_index(DOCUMENTS[:1], path, settings=settings)

    build_index(DOCUMENTS, path, settings=Settings())

    with Index.open(path) as index:
        assert index.manifest.encoder_name == "all-MiniLM-L6-v2 fp32"
        assert index.manifest.settings.encoder.precision == "fp32"
    with Workspace.open(path, settings=Settings()) as space:
        assert space.embedder.name == "all-MiniLM-L6-v2 fp32"
        assert space.retriever("dense")("What powers the mill?", 1)[0].chunk.document_id == "mill"
