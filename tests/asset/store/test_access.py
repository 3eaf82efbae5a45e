"""Tests that an index is no more open to other accounts than its corpus, and stays open to those it was opened to."""

import os
import stat
import sys
from pathlib import Path

import pytest

from kraq_dspy import add_documents, build_index, export_index, remove_documents, update_index
from kraq_dspy.asset.corpus.files import readers_of
from kraq_dspy.asset.store.access import copied_from, follow
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.extend import FaqCache
from tests.conftest import WarmShell

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")

TEXTS = {
    "a.txt": "Ada Lovelace met Charles Babbage in London.",
    "b.txt": "Charles Babbage built the Difference Engine.",
}


@pytest.fixture(autouse=True)
def usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def corpus_in(folder: Path, *, files: int, folders: int) -> Path:
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(files)
    folder.chmod(folders)
    return folder


def modes_of(root: Path) -> set[int]:
    """The permission bits of all that is in a folder and of itself, those of files with an x wherever there is an r."""
    bits = set()
    for path in (root, *root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        bits.add(mode if path.is_dir() else mode | (mode & 0o444) >> 2)
    return bits


@pytest.mark.parametrize(
    ("files", "folders", "readers"),
    [
        (0o644, 0o755, 0o777),
        (0o600, 0o755, 0o700),
        (0o644, 0o700, 0o700),
        (0o640, 0o750, 0o770),
        (0o604, 0o705, 0o707),
        (0o644, 0o744, 0o700),  # a folder that others may list, and not enter
    ],
)
def test_readers_of_a_corpus_are_those_of_all_its_files(tmp_path: Path, files: int, folders: int, readers: int) -> None:
    assert readers_of(corpus_in(tmp_path / "corpus", files=files, folders=folders)) == readers


def test_one_private_file_of_many_counts(tmp_path: Path) -> None:
    corpus = corpus_in(tmp_path / "corpus", files=0o644, folders=0o755)
    (corpus / "deep" / "er").mkdir(parents=True)
    (corpus / "deep" / "er" / "c.txt").write_text("Ada wrote notes.")
    assert readers_of(corpus) == 0o777
    (corpus / "deep").chmod(0o700)
    assert readers_of(corpus) == 0o700


def test_an_index_is_as_private_as_its_corpus_through_every_change(tmp_path: Path) -> None:
    corpus, index = corpus_in(tmp_path / "corpus", files=0o600, folders=0o700), tmp_path / "x.kraq"
    build_index(corpus, index)
    assert modes_of(index) == {0o700}
    (corpus / "c.txt").write_text("Ada Lovelace wrote notes in Paris.")
    update_index(index, corpus)
    with FaqCache(index / FAQ) as faq:
        faq.add(NewEntry("Who?", "Ada."), by="me")
        assert modes_of(index) == {0o700}  # the files beside an open database, too
    remove_documents(index, ["c.txt"])
    assert modes_of(index) == {0o700}


def test_a_private_document_closes_an_index_to_others_and_not_to_its_group(tmp_path: Path) -> None:
    corpus, index = corpus_in(tmp_path / "corpus", files=0o644, folders=0o755), tmp_path / "x.kraq"
    build_index(corpus, index)
    assert modes_of(index) == {0o755}
    (tmp_path / "private.txt").write_text("Ada Lovelace wrote to Mary Somerville.")
    (tmp_path / "private.txt").chmod(0o600)
    add_documents(index, tmp_path / "private.txt")
    assert modes_of(index) == {0o750}


def test_what_a_group_was_given_it_keeps(tmp_path: Path) -> None:
    corpus, index = corpus_in(tmp_path / "corpus", files=0o600, folders=0o700), tmp_path / "x.kraq"
    build_index(corpus, index)
    for path in (index, *index.rglob("*")):
        path.chmod(0o750 if path.is_dir() else 0o640)
    os.umask(0o077)  # as of a scheduled job
    (corpus / "c.txt").write_text("Ada Lovelace wrote notes in Paris.")
    update_index(index, corpus)
    assert modes_of(index) == {0o750}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give a file to any group")
def test_files_that_are_made_later_belong_to_the_group_of_the_index(tmp_path: Path) -> None:
    (tmp_path / "x.kraq").mkdir(mode=0o750)
    os.chown(tmp_path / "x.kraq", -1, 4321)
    made = tmp_path / "x.kraq" / "made"
    made.write_text("")
    follow(tmp_path / "x.kraq", made)
    assert (made.stat().st_gid, stat.S_IMODE(made.stat().st_mode)) == (4321, 0o640)


@pytest.mark.parametrize(("folders", "file", "folder"), [(0o700, 0o600, 0o700), (0o755, 0o644, 0o755)])
def test_copies_of_an_index_are_no_more_open_than_it(
    folders: int, file: int, folder: int, tmp_path: Path, kraq: WarmShell
) -> None:
    """What commands write: tables, a test set with its draft, and a run with its reports."""
    index, out = tmp_path / "x.kraq", tmp_path / "out"
    out.mkdir(mode=0o755)
    build_index(corpus_in(tmp_path / "corpus", files=0o644, folders=folders), index)
    rows = '{"question": "Who met Charles Babbage?", "answer": "Ada Lovelace"}\n' * 2
    (tmp_path / "dev.jsonl").write_text(rows)
    commands = (
        ("export", index, "--out", out / "tables", "--format", "jsonl"),
        ("testset", "make", index, "--out", out / "test.jsonl", "--n", "2", "--kinds", "fact"),
        ("eval", index, tmp_path / "dev.jsonl", "--out", out / "run", "--retriever", "bm25"),
    )
    for command in commands:
        ended = kraq(*command)
        assert ended.returncode == 0, ended.stderr
    made = list(out.rglob("*"))
    assert {path.parts[len(out.parts)].split(".")[0] for path in made} == {"tables", "test", "run"}
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (folder if path.is_dir() else file), path


def test_exports_from_python_are_no_more_open_than_the_index(tmp_path: Path) -> None:
    index = tmp_path / "x.kraq"
    build_index(corpus_in(tmp_path / "corpus", files=0o600, folders=0o755), index)
    written = export_index(index, tmp_path / "tables", "jsonl")
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert os.umask(0o022) == 0o022
    for form in ("parquet", "graphml"):
        for path in export_index(index, tmp_path / form, form):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give a file to any group")
def test_a_copy_is_not_for_another_group_than_that_of_the_index(tmp_path: Path) -> None:
    (tmp_path / "x.kraq").mkdir(mode=0o750)
    os.chown(tmp_path / "x.kraq", -1, 4321)
    with copied_from(tmp_path / "x.kraq"):
        (tmp_path / "copy").write_text("")
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
