"""Reads files in another process: what ends that process costs one file."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.formats import apart as module
from kraq_dspy.asset.corpus.formats.apart import kept_apart
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row


def read_strangely(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Does what a file says, as a library may when a file is bad."""
    what = path.read_text()
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "exhaust":
        yield Row("x" * (16 << 30))
    elif what == "wait":
        time.sleep(60)
    print("printed")
    yield Row(what)


read = kept_apart(read_strangely)


def rows_of(folder: Path, what: str) -> list[Row | BadRow]:
    path = folder / what
    path.write_text(what)
    return list(read(path, ReadSettings()))


@pytest.mark.parametrize(("what", "reason"), [("crash", "SIGSEGV"), ("exhaust", "GB of memory")])
def test_a_file_that_ends_the_process_is_a_bad_row_and_the_next_is_read(tmp_path: Path, what: str, reason: str) -> None:
    (bad,) = rows_of(tmp_path, what)
    assert isinstance(bad, BadRow)
    assert reason in bad.reason
    assert rows_of(tmp_path, "fine") == [Row("fine")]


def test_a_file_that_takes_too_long_is_a_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_of(tmp_path, "fine") == [Row("fine")]
    monkeypatch.setattr(module, "SECONDS", 1)
    (bad,) = rows_of(tmp_path, "wait")
    assert isinstance(bad, BadRow)
    assert "longer" in bad.reason


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read(tmp_path / "none", ReadSettings()))


def test_a_process_that_ended_while_nobody_asked_is_started_again(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "fine") == [Row("fine")]
    process = module._worker._process
    assert process is not None
    process.kill()
    process.wait()
    assert rows_of(tmp_path, "fine") == [Row("fine")]
