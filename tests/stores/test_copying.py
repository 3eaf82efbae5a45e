"""A copy is what the file was, whatever the file system offers."""

import errno
import mmap
import random
import sys
from pathlib import Path

import pytest

from kraq_dspy.stores import copying
from kraq_dspy.stores.copying import copy_file

PAGE = mmap.PAGESIZE
SIZES = [0, 1, PAGE, PAGE + 1, 2 * PAGE, 5 * PAGE, 5 * PAGE + 7]


@pytest.fixture(params=SIZES)
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of some pages, which is large here; two are written at once."""
    monkeypatch.setattr(copying, "_LARGE", PAGE)
    monkeypatch.setattr(copying, "_BLOCK", 2 * PAGE)
    (tmp_path / "source").write_bytes(random.Random(0).randbytes(request.param))
    (tmp_path / "target").write_bytes(b"longer than nothing" * PAGE)
    return tmp_path / "source"


def refused(*args: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "not here")


def test_a_copy_is_the_same(source: Path, tmp_path: Path) -> None:
    copy_file(source, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="direct writes are Linux's")
def test_past_the_page_cache(source: Path, tmp_path: Path) -> None:
    with source.open("rb", buffering=0) as old, (tmp_path / "target").open("wb", buffering=0) as new:
        if not copying._written_directly(old, new):
            pytest.skip("this file system has no direct writes")
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


def test_a_write_that_is_refused_half_way_is_made_another_way(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = copying._write
    written: list[int] = []

    def write_once(file: object, view: memoryview) -> None:
        if written:
            refused()
        written.append(len(view))
        write(file, view)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "_write", write_once)
    copy_file(source, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


def test_a_file_system_without_direct_writes(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_write", refused)
    copy_file(source, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="direct writes are Linux's")
def test_a_full_disk_is_no_reason_to_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    (tmp_path / "source").write_bytes(b"x" * PAGE)
    monkeypatch.setattr(copying, "_LARGE", 1)
    monkeypatch.setattr(copying, "_shares_blocks", lambda old, new: False)
    monkeypatch.setattr(copying, "_write", full)
    with pytest.raises(OSError, match="full"):
        copy_file(tmp_path / "source", tmp_path / "target")
