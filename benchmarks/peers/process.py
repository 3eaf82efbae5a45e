"""Runs a command and measures what it and all of its children take: wall, processor and memory."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INTERVAL_S = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Taken:
    """`peak_mb` is the largest sum of the resident memory of the processes of the tree, looked up ten times a second;
    pages that they share count once for each. `own_mb` is the largest of the first process alone."""

    exit_code: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    own_mb: float = 0.0


@contextmanager
def served(script: Path, *arguments: str) -> Iterator[str]:
    """The first line that the script prints, the address of what it serves, for the length of the block: it ends when
    its input does."""
    process = subprocess.Popen(
        [sys.executable, str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit(f"{script.name} served nothing; it says why above.")
        yield address
    finally:
        process.communicate()


def run_measured(
    command: Sequence[str], environment: Mapping[str, str], log: Path, *, limit_s: float = math.inf
) -> Taken:
    """What the command prints goes to `log`. After `limit_s` it is killed with all of its children."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=dict(environment), start_new_session=True
        )
        peak = own = 0
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, resident_bytes(process.pid))
            own = max(own, resident_bytes(process.pid, alone=True))
            if time.monotonic() - start > limit_s:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(INTERVAL_S)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    return Taken(process.returncode, wall, used.ru_utime + used.ru_stime, peak / 2**20, own / 2**20)


def resident_bytes(root: int, *, alone: bool = False) -> int:
    """Of a process and all below it, or of it `alone`; 0 where it has ended."""
    total, waiting = 0, [root]
    while waiting:
        place = Path("/proc") / str(waiting.pop())
        try:
            total += int((place / "statm").read_text().split()[1]) * PAGE
            if alone:
                break
            for task in (place / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between two looks
    return total
