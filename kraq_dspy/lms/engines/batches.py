"""Gathers requests that arrive at about the same time, and works on them together."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Batches(Generic[Job, Result]):
    """`work(jobs, cancelled)` runs in one thread of its own, on up to `size` jobs at a time.

    The thread waits `gather_s` after the last job for another one, so that callers in many threads meet in one batch.
    `cancelled[i]()` tells whether nobody waits for job i any more. An exception of `work` is raised to every caller of
    the batch; a result that is an exception, to its own.
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
        self._waiting: queue.SimpleQueue[tuple[Job, Future[Result]] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: Job) -> "Future[Result]":
        """Cancel the future, and its job is dropped before its batch begins; `work` is told if it has begun."""
        future: Future[Result] = Future()
        with self._starting:
            if self._closed:
                raise RuntimeError("The model was closed.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kraq-batches", daemon=True)
                self._thread.start()
            self._waiting.put((job, future))
        return future

    def close(self) -> None:
        """Waits for the batch at work; jobs behind it are cancelled."""
        with self._starting:
            self._closed = True
            thread = self._thread
            self._waiting.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while batch := self._next():
            jobs, futures = zip(*batch, strict=True)
            try:
                results = self._work(jobs, [future.cancelled for future in futures])
            except Exception as error:  # noqa: BLE001 (whoever waits must hear of it, whatever it is)
                results = [error] * len(jobs)
            for future, result in zip(futures, results, strict=True):
                _settle(future, result)
        while not self._waiting.empty():
            left = self._waiting.get()
            if left is not None:
                left[1].cancel()

    def _next(self) -> list[tuple[Job, "Future[Result]"]]:
        batch: list[tuple[Job, Future[Result]]] = []
        while len(batch) < self._size:
            try:
                item = self._waiting.get(timeout=self._gather_s if batch else None)
            except queue.Empty:
                break
            if item is None:
                self._waiting.put(None)  # for the next round, which ends the thread
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
