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

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kraq_dspy.errors import ConfigError

END_S = 0.4
"""Answers under way have so long to end once somebody ends the server."""

HEADERS_BYTES = 64 << 10
HEADERS_S = 10.0
"""A client has so long to send the headers of a request, counted from its connection or their first byte."""

TRIES = 20


def bound(host: str, port: int, *, next_free: bool = False) -> socket.socket:
    """A socket on the address; with `next_free`, on one of the next ports where that is taken. Port 0 takes a free one.

    Raises ConfigError.
    """
    ports = range(port, min(65_536, port + (TRIES if next_free and port else 1)))
    for tried in ports:
        try:
            return _bound(host, tried)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ConfigError(f"The address {host}:{tried} cannot be used: {error.strerror}.") from error
            if error.errno == errno.EACCES:
                raise ConfigError(f"The port {tried} needs rights that you have not. Take one above 1023.") from error
    if next_free:
        raise ConfigError(f"The ports {ports[0]} to {ports[-1]} are all in use. Choose another one: --port N")
    raise ConfigError(f"The port {port} is in use. Choose another one, or 0 for a free one: --port N")


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise ConfigError(f"--host {host!r} is no address of this machine: {error.strerror}.") from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except BaseException:
        listening.close()
        raise
    return listening


def address_of(listening: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(
    app: Any,
    listening: socket.socket,
    *,
    started: Callable[[], None] = lambda: None,
    stoppable: Callable[[Callable[[], None]], None] = lambda stop: None,
) -> None:
    """Serve `app`, an ASGI application, until Ctrl-C or SIGTERM. Raises KeyboardInterrupt after Ctrl-C.

    `started` is called when requests are taken; `stoppable` is handed what stops the server from another thread.
    """
    server = _Server(_config(app), started)
    stoppable(server.stop)
    loop = asyncio.new_event_loop()  # asyncio.run would wait for threads whose answers nobody waits for any more
    try:
        loop.run_until_complete(server.serve([listening]))
    finally:
        loop.close()
    if server.interrupted:
        raise KeyboardInterrupt


def _config(app: Any) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it logs answers that were cut off at the end
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        http=TimedHeaders,
        ws="none",
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=HEADERS_BYTES,
        timeout_graceful_shutdown=END_S,  # type: ignore[arg-type] # seconds, of which it takes parts too
    )


class TimedHeaders(H11Protocol):
    """uvicorn's protocol, which would hold a connection open for ever whose headers never come to an end."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._time_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _time_headers(self) -> None:
        if not self._waits_for_headers() and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif self._waits_for_headers() and self._timer is None:
            self._timer = self.loop.call_later(HEADERS_S, self._give_up)

    def _waits_for_headers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _give_up(self) -> None:
        self._timer = None
        if self._waits_for_headers():
            self.transport.abort()


class _Server(uvicorn.Server):
    """Says when it has started; ends on a signal without passing it on, which would count as another one."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started
        self.interrupted = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._tell()

    def stop(self) -> None:
        self.should_exit = True

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
        self.interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)
