"""Tests that the sums of a complete state's files are noted, and compared when the files are opened."""

import json
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store import own_files
from kraq_dspy.asset.store.own_files import add_sum, damaged_files, forget_sum, own_file, write_sums
from kraq_dspy.errors import IndexStateError
from tests.asset.store.indexes import chunk, current_home, make


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "vectors").mkdir()
    for name in ("a", "vectors/b", "manifest.json"):
        (tmp_path / name).write_text(f"content of {name}")
    write_sums(tmp_path)
    return tmp_path


def test_a_sound_file_is_found_and_one_that_is_not_noted_is_none(home: Path) -> None:
    (home / "c").write_text("put there since")
    assert own_file(home, "vectors/b") == home / "vectors" / "b"
    assert own_file(home, "c") is None
    assert list(damaged_files(home)) == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("content of A", "its content has changed"),
        ("content", "it has 7 bytes in place of 12"),
        (None, "it is missing"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(home: Path, content: str | None, fault: str) -> None:
    (home / "a").unlink() if content is None else (home / "a").write_text(content)
    assert dict(damaged_files(home)) == {"a": fault}
    with pytest.raises(IndexStateError, match=rf"a' is damaged: {fault}.*kraq check DIR --repair"):
        own_file(home, "a")


def test_a_file_that_changes_after_a_process_found_it_sound_is_read_again(home: Path) -> None:
    assert own_file(home, "a") == home / "a"
    with (home / "a").open("r+b") as file:  # in its place, and as long as it was
        file.write(b"C")

    with pytest.raises(IndexStateError, match="its content has changed"):
        own_file(home, "a")


def test_a_very_large_file_is_read_in_full_by_a_check_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_READ_AT_ONCE", 3)
    (home / "a").write_text("content of A")
    assert own_file(home, "a") == home / "a"
    assert dict(damaged_files(home)) == {"a": "its content has changed"}


def test_a_file_that_is_replaced_counts_as_absent_until_it_is_noted(home: Path) -> None:
    forget_sum(home, "a")
    (home / "a").write_text("something else")
    assert own_file(home, "a") is None
    add_sum(home, "a")
    assert own_file(home, "a") == home / "a"


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', '{"a": ["x", 1]}', "{" * 100_000])
def test_notes_that_are_damaged_are_named(home: Path, text: str) -> None:
    (home / "sums.json").write_text(text)
    assert dict(damaged_files(home)).keys() == {"sums.json"}
    with pytest.raises(IndexStateError, match=r"sums.json' is damaged"):
        own_file(home, "a")


@pytest.mark.parametrize("bit", range(8))
def test_no_byte_of_the_notes_changes_what_they_say_without_a_word(home: Path, bit: int) -> None:
    path = home / "sums.json"
    content, sums = path.read_bytes(), own_files.read_sums(home)
    refused = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        try:
            assert own_files.read_sums(home) == sums  # a space became a line's end
        except IndexStateError:
            refused += 1
    assert refused > len(content) / 2


def test_a_name_or_a_line_that_is_lost_from_the_notes_is_missed(home: Path) -> None:
    path = home / "sums.json"
    fields = json.loads(path.read_text())
    for files in ({}, {"a": fields["files"]["a"]}, {**fields["files"], "c": [0, 0]}):
        path.write_text(json.dumps({**fields, "files": files}))
        with pytest.raises(IndexStateError, match=r"sums.json' is damaged"):
            own_file(home, "vectors/b")


def test_a_draft_that_a_kill_left_behind_is_neither_noted_nor_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    with make(path) as index:
        index.add([chunk("a")])
        # as a writer leaves them that is killed while it replaces sums.json, or has SQLite write its file anew
        left = (".sums.json.new", ".index.db.new", ".index.db.new-journal", "a.db-wal", "a.db-shm")
        for name in left:
            (index.home / name).write_text("{")
        index.update_manifest(complete=True)
    assert not [name for name in left if (current_home(path) / name).exists()]
    with Index.open(path, write=True) as index:
        index.add([chunk("b")])
    assert dict(damaged_files(current_home(path))) == {}
    with Index.open(path) as index:
        assert index.counts()["chunks"] == 2
