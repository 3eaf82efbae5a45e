"""Watches a build from another process until it is complete: `kraq status --watch`."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.text import Text

from kraq_dspy.apps.cli.shared.bars import label
from kraq_dspy.apps.cli.shared.terminal import compact, grid, output, print_line, two_columns
from kraq_dspy.records import Usage, usage_by_stage


@dataclass(frozen=True)
class BuildProgress:
    """An index at one moment."""

    time: str
    complete: bool
    counts: dict[str, int]
    usage: dict[str, Usage]
    failures: int


def watch(index_dir: Path, *, every_s: float, as_json: bool, sleep: Callable[[float], None] = time.sleep) -> None:
    """Shows the index every `every_s` seconds; ends when it is complete, or when no process works on it any more.

    As JSON, one object a line.
    """
    before, then = look(index_dir), time.monotonic()
    if as_json:
        print_line(before)
        while not before.complete and under_way(index_dir):
            sleep(every_s)
            before = look(index_dir)
            print_line(before)
        return
    with Live(_shown(index_dir, before, before, 0), console=output) as live:
        now = before
        while not now.complete and under_way(index_dir):
            sleep(every_s)
            now = look(index_dir)
            live.update(_shown(index_dir, before, now, time.monotonic() - then))
            before, then = now, time.monotonic()


def under_way(index_dir: Path) -> bool:
    """Whether a process is changing the index."""
    from kraq_dspy.asset.store.lock import holder

    return holder(index_dir / "lock") is not None


def look(index_dir: Path) -> BuildProgress:
    """Raises IndexStateError where there is no index."""
    from kraq_dspy.asset.store.index import Index

    with Index.open(index_dir, unfinished=True) as index:
        usage = usage_by_stage(index.results.usage())
        failures = len(index.results.failures())
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        return BuildProgress(moment, index.manifest.complete, index.counts(), usage, failures)


def _shown(index_dir: Path, before: BuildProgress, now: BuildProgress, seconds: float) -> Group:
    state = Text("complete", style="green") if now.complete else Text("under way, or interrupted")
    rows = []
    for stage, used in now.usage.items():
        new = used.calls - before.usage.get(stage, Usage()).calls
        rate = f"{new / seconds:.1f}" if seconds and new else ""
        rows.append((label(stage), used.calls, rate, compact(used.prompt_tokens), compact(used.completion_tokens)))
    table = grid("asked of models so far", "stage,>calls,>a second,>tokens in,>tokens out", rows)
    return Group(two_columns(str(index_dir), {"state": state, "at": now.time, **now.counts}), table)
