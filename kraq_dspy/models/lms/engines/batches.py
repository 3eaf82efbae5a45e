"""Gathers requests that arrive at about the same time, and works on them together."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeAlias, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

Waiting: TypeAlias = queue.SimpleQueue[tuple[Job, Future[Result]] | None]


class Batches(Generic[Job, Result]):
    """`work(jobs, cancelled)` runs in one thread of its own, on up to `size` jobs at a time.

    The thread waits `gather_s` after the last job for another one, so that callers in many threads meet in one batch.
    `cancelled[i]()` tells whether nobody waits for job i any more. An exception of `work` is raised to every caller of
    the batch; a result that is an exception, to its own. Whoever shares it may close it at any time.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Job], Sequence[Callable[[], bool]]], Sequence[Result | Exception]],
        *,
        size: int,
        gather_s: float,
    ) -> None:
        self._work = work
        self._size = size
        self._gather_s = gather_s
        self._starting = threading.Lock()
        self._waiting: Waiting[Job, Result] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._former: threading.Thread | None = None  # it was closed, and may still be at work

    def submit(self, job: Job) -> "Future[Result]":
        """Cancel the future, and its job is dropped before its batch begins; `work` is told if it has begun."""
        future: Future[Result] = Future()
        with self._starting:
            if self._thread is None:
                self._waiting = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=self._run, args=(self._waiting, self._former), name="kraq-batches", daemon=True
                )
                self._thread.start()
            self._waiting.put((job, future))
        return future

    def close(self) -> None:
        """End the thread once it has done what was submitted, and wait for that. The next job starts another one."""
        with self._starting:
            thread = self._thread
            if thread is None:
                return
            self._former, self._thread = thread, None
            self._waiting.put(None)
        if thread is not threading.current_thread():
            thread.join()

    def _run(self, waiting: "Waiting[Job, Result]", former: threading.Thread | None) -> None:
        if former is not None:
            former.join()  # `work` is for one thread
        while batch := self._next(waiting):
            jobs, futures = zip(*batch, strict=True)
            try:
                results = self._work(jobs, [future.cancelled for future in futures])
            except Exception as error:  # noqa: BLE001 (whoever waits must hear of it, whatever it is)
                results = [error] * len(jobs)
            for future, result in zip(futures, results, strict=True):
                _settle(future, result)

    def _next(self, waiting: "Waiting[Job, Result]") -> list[tuple[Job, "Future[Result]"]]:
        batch: list[tuple[Job, Future[Result]]] = []
        while len(batch) < self._size:
            try:
                item = waiting.get(timeout=self._gather_s if batch else None)
            except queue.Empty:
                break
            if item is None:
                waiting.put(None)  # for the next round, which ends the thread
                break
            if not item[1].cancelled():
                batch.append(item)
        return batch


def _settle(future: "Future[Result]", result: Result | Exception) -> None:
    # Not set_running_or_notify_cancel before the work: a running future could not be cancelled any more.
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
