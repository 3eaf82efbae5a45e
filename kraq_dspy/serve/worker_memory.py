"""Holds what the workers of one server share: rates of clients, what was spent on models, counts for Prometheus."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from secrets import token_bytes
from tempfile import TemporaryDirectory
from typing import Any

from kraq_dspy.lms.shared_spending import FIELDS, SharedSpending

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class Shared:
    """Memory of all workers, which reaches them when they are started. `spending` is by index, in their order."""

    rates: Any
    salt: bytes
    spending: tuple[Any, ...]
    metrics: Path

    def spent_on(self, index: int, worker: int) -> SharedSpending:
        return SharedSpending(self.spending[index], worker)

    def count_together(self) -> None:
        """In a worker, before prometheus_client is imported: it counts in files then, which any worker can read."""
        os.environ[METRICS_VARIABLE] = str(self.metrics)

    def forget(self, pid: int | None) -> None:
        """A worker has ended: what it had under way is no longer. What it had counted stays."""
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(pid, str(self.metrics))  # type: ignore[no-untyped-call]


@contextmanager
def shared_by(workers: int, indexes: int) -> Iterator[Shared]:
    from kraq_dspy.serve.guard import BUCKETS

    with TemporaryDirectory(prefix="kraq-serve-") as folder:
        spending = tuple(RawArray("d", workers * FIELDS) for _ in range(indexes))
        yield Shared(RawArray("d", 2 * BUCKETS), token_bytes(16), spending, Path(folder))
