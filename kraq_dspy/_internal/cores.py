"""Counts the cores that this process may use, and those that nobody uses now."""

import os
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may use: its affinity and, in a container, its share of the processors."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        # "200000 100000": so many microseconds in each period, or "max"
        quota = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except OSError:
        quota = []
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, -(-int(quota[0]) // int(quota[1])))
    return max(1, cores)


def free_cores() -> int:
    """Usable cores without the share of the machine that was busy in the last minute; at least 1.

    Threads of one model wait for each other at every layer, so a thread without a core of its own slows all of them.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, round(usable_cores() * (1 - load / (os.cpu_count() or 1))))
