"""Runs the application on a port of this machine until somebody ends it."""

import asyncio
import errno
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import dspy
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kraq_dspy.errors import ConfigError

END_S = 0.4
"""Answers under way have so long to end once somebody ends the server."""


HEADERS_S = 10.0
"""A connection that has sent no whole head of a request after so long is closed: it holds a place."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # the one that uvicorn found, which it chooses as it runs
    """HTTP as uvicorn speaks it, that waits for the head of a request for `HEADERS_S` and no longer.

    The time runs from the connection, or from the first byte after an answer; more bytes do not prolong it.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self._waits_for_a_head():
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_S, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if self._waits_for_a_head() and not self.transport.is_closing():
            self.transport.close()

    def _waits_for_a_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


def bound(host: str, port: int, *, or_any: bool = False) -> socket.socket:
    """A socket on the address; with `or_any`, on a free port where that one is taken. Port 0 takes a free one.

    Raises ConfigError.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise ConfigError(f"--host {host!r} is no address of this machine: {error.strerror}.") from error

    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE and or_any:
            return bound(host, 0)
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"The port {port} is in use. Choose another one, or 0 for a free one: --port N"
            ) from error
        if error.errno == errno.EACCES:
            raise ConfigError(f"The port {port} needs rights that you do not have. Take one above 1023.") from error
        raise ConfigError(f"The address {host}:{port} cannot be used: {error.strerror}.") from error
    return listening


def address_of(listening: socket.socket) -> str:
    """Tell where a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Server(uvicorn.Server):
    """Calls `started` when requests are taken; ends on a signal without passing it on, which would count as another
    one. `should_exit` ends it from another thread."""

    def __init__(self, app: Any, started: Callable[[], None] = lambda: None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it logs answers that were cut off at the end
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                http=PatientProtocol,
                ws="none",
                timeout_keep_alive=30,
                limit_concurrency=512,
                timeout_graceful_shutdown=END_S,  # type: ignore[arg-type] # seconds, of which it takes parts too
            )
        )
        self._started = started
        self._interrupted = False

    def run_on(self, listening: socket.socket) -> None:
        """Serve until Ctrl-C or SIGTERM. Raises KeyboardInterrupt after Ctrl-C.

        Calls leave no trace in DSPy's settings, which would hold the last 10,000 with their passages.
        """
        loop = asyncio.new_event_loop()  # asyncio.run would wait for threads whose answers nobody waits for any more
        try:
            with dspy.context(trace=None):
                loop.run_until_complete(self.serve([listening]))
        finally:
            loop.close()
        if self._interrupted:
            raise KeyboardInterrupt

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)
