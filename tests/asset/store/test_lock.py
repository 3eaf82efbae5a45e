import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy.asset.store.lock import FileLock
from kraq_dspy.errors import IndexLockedError, IndexStateError

HOLDER = """
import sys, time
from pathlib import Path
from kraq_dspy.asset.store.lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_process_learns_who_holds_the_lock_and_what_to_do(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    with pytest.raises(IndexLockedError) as refusal:
        FileLock(tmp_path / "lock").acquire()

    message = str(refusal.value)
    assert f"process {holder.pid} " in message
    assert sys.executable in message
    assert "since 20" in message
    assert "Wait for it, or end it" in message


def test_the_lock_of_a_killed_process_does_not_block(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()

    lock = FileLock(tmp_path / "lock")
    lock.acquire()

    assert lock.held


def test_a_second_lock_in_the_same_process_is_refused_until_the_first_is_released(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    first.acquire()

    with pytest.raises(IndexLockedError, match="this process"):
        second.acquire()
    first.release()
    second.acquire()

    assert second.held
    assert not first.held


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(IndexStateError, match=r"/proc/1/lock.*must exist and be writable"):
        FileLock(Path("/proc/1/lock")).acquire()
