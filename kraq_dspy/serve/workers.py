"""Runs a server as several processes behind one port: a dead one is replaced, and all end together.

Each process is started afresh (not forked, since threads of numerical libraries do not survive that) and inherits the
listening socket, so the system gives a connection to whichever is free. The first process opens no index and answers
nothing: it waits for what happens to the others.
"""

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import NoReturn, Protocol

from kraq_dspy.backoff import Backoff
from kraq_dspy.errors import ConfigError, KraqError

logger = logging.getLogger(__name__)

END_S = 5.0
"""A worker that is asked to end has so long, then it is killed."""

WAKE_S = 0.5
"""So often it is looked whether a worker is due to start again; and on Windows, Ctrl-C does not end a wait."""

RESTARTS = Backoff(retries=1 << 30, first_s=0.5, longest_s=30.0)


class Work(Protocol):
    """What a worker does; it is pickled on its way there."""

    def __call__(self, number: int, listening: socket.socket, ready: Callable[[list[str]], None]) -> None:
        """Serve, as the worker of this number (from 0), until SIGTERM; `ready` is called with what is to be said once
        requests are taken."""


def run_workers(
    work: Work,
    count: int,
    listening: socket.socket,
    *,
    started: Callable[[list[str]], None],
    ended: Callable[[int | None], None],
) -> None:
    """Until Ctrl-C or SIGTERM. `started` is called once, when all are ready, with the lines of one of them; `ended` is
    called with the process id of each that died.

    Raises KraqError where a worker cannot start at all, and KeyboardInterrupt after Ctrl-C.
    """
    workers = [_Worker(work, number, listening) for number in range(count)]
    try:
        with _sigterm_ends():
            for worker in workers:
                worker.start()
            _watch(workers, started, ended)
    except _EndedError:
        pass
    finally:
        processes = [worker.process for worker in workers if worker.process is not None]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(END_S)
            process.kill()
            process.join()


def _watch(
    workers: "list[_Worker]", started: Callable[[list[str]], None], ended: Callable[[int | None], None]
) -> NoReturn:
    has_started = False
    while True:
        due = [worker for worker in workers if worker.process is None and worker.start_at <= time.monotonic()]
        for worker in due:
            worker.start()
        wait([sign for worker in workers for sign in worker.signs()], WAKE_S)
        for worker in workers:
            if worker.has_ended():
                ended(worker.pid)
                if not has_started:
                    raise worker.refusal()
                worker.start_later()
        if not has_started and all(worker.lines is not None for worker in workers):
            has_started = True
            started(workers[0].lines or [])


class _Worker:
    """One place among the workers, and the process that has it at the time: None while it waits for another one."""

    def __init__(self, work: Work, number: int, listening: socket.socket) -> None:
        self.work = work
        self.number = number
        self.listening = listening
        self.process: BaseProcess | None = None
        self.pid: int | None = None
        self.start_at = 0.0
        self.lines: list[str] | None = None
        self._error: tuple[bool, str] | None = None
        self._news: Connection | None = None
        self._attempt = 0

    def start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._news, theirs = spawning.Pipe(duplex=False)
        self._error = None
        self.process = spawning.Process(
            target=_work, args=(self.work, self.number, self.listening, theirs), name=f"worker {self.number + 1}"
        )
        with _deaf_to_ctrl_c():
            self.process.start()
        self.pid = self.process.pid
        theirs.close()

    def signs(self) -> "list[Connection | int]":
        """What can be waited for: something comes from it when something happens."""
        return [] if self.process is None else [self.process.sentinel, *([self._news] if self._news else [])]

    def has_ended(self) -> bool:
        """Also takes what the process said, if it said something."""
        if self.process is None:
            return False
        if self._news is not None and self._news.poll():
            try:
                message = self._news.recv()
            except EOFError:
                message = None
            self._news.close()
            self._news = None
            if isinstance(message, list):
                self.lines, self._attempt = message, 0
            elif message is not None:
                self._error = message
        return not self.process.is_alive()

    def start_later(self) -> None:
        self.start_at = time.monotonic() + (RESTARTS.wait(self._attempt) or 0.0)
        self._attempt += 1
        logger.error("Worker %d (process %s) %s; another one starts.", self.number + 1, self.pid, self._end())
        self.process = None

    def refusal(self) -> KraqError:
        """Why it could not start."""
        if self._error is not None:
            is_setting, message = self._error
            return ConfigError(message) if is_setting else KraqError(message)
        return KraqError(
            f"A worker {self._end()} while it started. If nothing above says why, the memory may be too small for so "
            "many: take fewer --workers."
        )

    def _end(self) -> str:
        if self._error is not None:
            return f"could not start: {self._error[1]}"
        code = (self.process and self.process.exitcode) or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _work(work: Work, number: int, listening: socket.socket, news: Connection) -> None:
    """In the worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(number, listening, news.send)
    except KraqError as error:
        news.send((isinstance(error, ConfigError), str(error)))
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    """A first process that was killed can end nobody any more, and the port must not stay taken."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """What is started meanwhile never hears Ctrl-C, which a terminal sends to everybody: the first process ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first start would start it, which unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _EndedError(BaseException):
    """SIGTERM came."""


@contextmanager
def _sigterm_ends() -> Iterator[None]:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise _EndedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
