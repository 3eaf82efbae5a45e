"""Tests that one process at a time holds an index, and that the lock says who without what was typed."""

import os
import sys
from pathlib import Path

import pytest

from kraq_dspy.asset.store.own_files import FileLock, holder, program_name
from kraq_dspy.errors import IndexLockedError, IndexStateError


def test_a_second_lock_in_the_same_process_is_refused_until_the_first_is_released(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    first.acquire()

    with pytest.raises(IndexLockedError, match="this process"):
        second.acquire()
    first.release()
    second.acquire()

    with pytest.raises(IndexLockedError, match="this process"):
        first.acquire()


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(IndexStateError, match=r"/proc/1/lock.*must exist and be writable"):
        FileLock(Path("/proc/1/lock")).acquire()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/usr/bin/kraq", "serve", "a.kraq", "--token", "hunter2"], "kraq serve"),
        (["/site-packages/kraq_dspy/__main__.py", "ask", "a.kraq", "Who is ill?"], "kraq ask"),
        (["kraq", "--token=hunter2", "serve"], "kraq"),
        (["kraq.exe", "Hunter 2"], "kraq"),
        (["kraq"], "kraq"),
        (["/home/ada/nightly.py", "hunter2"], "nightly.py"),
        (["/site-packages/pytest/__main__.py", "hunter2"], "pytest"),
        (["-c", "hunter2"], "python"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_a_lock_says_what_its_holder_is_and_not_what_was_typed(arguments: list[str], name: str) -> None:
    assert program_name(arguments) == name


def test_the_file_holds_no_word_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["/usr/bin/kraq", "serve", str(tmp_path), "--token", "hunter2"]
    monkeypatch.setattr(sys, "argv", typed)
    monkeypatch.setattr(sys, "orig_argv", ["python", *typed])
    (tmp_path / "lock").write_text('{"pid": 1, "command": "kraq serve --token hunter2"}')  # of an earlier version
    lock = FileLock(tmp_path / "lock")
    lock.acquire()
    assert "this process (kraq serve) since" in (holder(tmp_path / "lock") or "")
    assert b"hunter2" not in (tmp_path / "lock").read_bytes()


def test_a_lock_that_is_another_file_by_a_hard_link_is_held_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    os.link(tmp_path / "thesis", tmp_path / "lock")
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(IndexLockedError, match="another process"):
        second.acquire()
    assert (tmp_path / "thesis").read_text() == "years of work"
