"""Tells how many processor cores and how much memory are free, so that a model in this process takes no more."""

import os
import sys
import time
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Cores that this process may use: its affinity and, in a container, its share of the processors."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = _words(_CGROUP / "cpu.max")  # "200000 100000": so many microseconds in each period, or "max"
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, -(-int(quota[0]) // int(quota[1])))
    return max(1, cores)


def free_cores(sample_s: float = 0.2) -> int:
    """Usable cores that nobody else is busy on just now; at least 1.

    Threads of one model wait for each other at every layer, so a thread without a core of its own slows all of them.
    Linux is watched for `sample_s` seconds; elsewhere the load average of the last minute is taken.
    """
    cores = usable_cores()
    before = _idle_and_total()
    if before is None:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        return max(1, cores - int(load))
    time.sleep(sample_s)
    after = _idle_and_total()
    passed = after[1] - before[1] if after else 0
    if not after or not passed:
        return cores
    counted = len(os.sched_getaffinity(0))
    return max(1, min(cores, round(counted * (after[0] - before[0]) / passed)))


def free_memory() -> int | None:
    """Bytes that can be taken without swapping, within the container's limit; None where the system does not say."""
    free: list[int] = []
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            free.append(int(line.split()[1]) * 1024)
    limit, used = _words(_CGROUP / "memory.max"), _words(_CGROUP / "memory.current")
    if limit and limit[0].isdigit() and used:
        cached = [int(line.split()[1]) for line in _lines(_CGROUP / "memory.stat") if line.startswith("inactive_file ")]
        free.append(int(limit[0]) - int(used[0]) + sum(cached))  # files in the cache make way
    if not free and sys.platform == "darwin":
        free.append(int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.75))
    return min(free, default=None)


def _idle_and_total() -> tuple[int, int] | None:
    """Clock ticks of the cores that this process may use: those that make way (idle, waiting, niced), and all."""
    allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)} if hasattr(os, "sched_getaffinity") else set()
    rows = [line.split() for line in _lines(Path("/proc/stat"))]
    ticks = [[int(word) for word in row[1:]] for row in rows if row and row[0] in allowed]
    if not ticks:
        return None
    return sum(row[1] + row[3] + row[4] for row in ticks), sum(sum(row[:8]) for row in ticks)


def _words(path: Path) -> list[str]:
    lines = _lines(path)
    return lines[0].split() if lines else []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
