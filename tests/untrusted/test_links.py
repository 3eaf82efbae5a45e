"""Tests an index of somebody else: its files are read and written in it, and no link is followed out of it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy import Index, add_documents, remove_documents, resume_index
from kraq_dspy.asset.store.own_files import holder
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from tests.asset.store.indexes import chunk, make
from tests.conftest import WarmShell

STATE = "states/1"
NAMES = (
    *("manifest.json", ".manifest.json.new", "lock", "states", STATE, "draft", "draft.new", "draft/made-as"),
    *("draft/manifest.json", "draft/index.db", "draft/index.db-wal", "draft/vectors/chunks.fresh"),
    *(f"{STATE}/{name}" for name in ("manifest.json", "index.db", "index.db-wal", "passages.graph", "mentions.arrays")),
    *(f"{STATE}/{name}" for name in ("sums.json", "raptor.json", "vectors", "vectors/chunks")),
    *("faq.db", "instructed.db", "k2rag.kraq", "k2rag.kraq/manifest.json", "k2rag.kraq/lock"),
)
DOORS: dict[str, Callable[[Path], object]] = {
    "open": Index.open,
    "write": lambda path: Index.open(path, write=True),
    "create": lambda path: Index.create(path, Settings(), encoder_name="keywords", encoder_dimension=2),
    "check": check_index,
    "resume": resume_index,
    "add": lambda path: add_documents(path, [Document("a", "A", "Ada lived in London.")]),
    "remove": lambda path: remove_documents(path, ["d1"]),
}


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    with make(tmp_path / "x.kraq") as index:
        index.add([chunk("a")])
        index.update_manifest(complete=True)
    return tmp_path / "x.kraq"


def put_in_place(name: Path, *, pipe: bool, target: Path) -> None:
    name.parent.mkdir(parents=True, exist_ok=True)
    if name.is_dir():
        shutil.copytree(name, target, dirs_exist_ok=True)
        shutil.rmtree(name)
    elif name.exists():
        target.write_bytes(name.read_bytes())
        name.unlink()
    if pipe:
        os.mkfifo(name)
    else:
        name.symlink_to(target)


def contents(target: Path) -> dict[str, bytes]:
    files = target.rglob("*") if target.is_dir() else [target]
    return {str(file): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
@pytest.mark.parametrize("pipe", [False, True], ids=["link", "pipe"])
@pytest.mark.parametrize("name", NAMES)
def test_a_link_or_a_pipe_in_an_index_is_refused_at_every_door_and_not_written_through(
    whole: Path, tmp_path: Path, name: str, pipe: bool
) -> None:
    target = tmp_path / "outside"
    put_in_place(whole / name, pipe=pipe, target=target)
    before = contents(target)
    for act in DOORS.values():
        with pytest.raises(IndexStateError, match=r"a link, a pipe or a device"):
            act(whole)
    if name == "lock":
        with pytest.raises(IndexStateError, match=r"a link, a pipe or a device"):
            holder(whole / "lock")
    assert contents(target) == before


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_the_folder_itself_may_be_reached_by_a_link(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "link.kraq").symlink_to(whole)
    with Index.open(tmp_path / "link.kraq") as index:
        assert index.counts()["chunks"] == 1


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_the_command_line_names_the_link(kraq: WarmShell, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (whole / "lock").unlink()
    (whole / "lock").symlink_to(tmp_path / "precious")
    for words in (("status",), ("index",), ("precompute",), ("check",), ("ask", "Who?")):
        process = kraq(words[0], str(whole), *words[1:])
        assert process.returncode == 1
        assert "a link, a pipe or a device" in " ".join(process.stderr.split())
    assert (tmp_path / "precious").read_text() == "mine"
