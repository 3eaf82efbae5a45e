from pathlib import Path

import pytest

from kraq_dspy.asset.store.own_files import FileLock
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
