"""Reads no reply for ever and none of any size: a reply as a whole has a deadline, and a most of bytes.

A time limit for the next byte, which every client has, lets a server write a byte a second for a day; and what a few
kilobytes of gzip hold may fill the memory. LiteLLM's clients, which some providers need, have the first limit alone.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.dspy_internals import (
    AsyncLM15Engine,
    LM15Engine,
    StdlibAsyncTransport,
    StdlibTransport,
    TransportRequest,
)


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """What a whole reply may take; `where` names the server and the settings in messages."""

    where: str
    seconds: float
    megabytes: int

    def late(self) -> CollectionLimitError:
        return CollectionLimitError(
            f"{self.where} was not done with its reply after {self.seconds:g} s (reply_s); it is given up.",
            limit="seconds",
        )

    def require_room(self, size: int) -> None:
        """Raises CollectionLimitError for so many bytes of a body, unpacked."""
        if size > self.megabytes << 20:
            raise CollectionLimitError(
                f"The reply of {self.where} is larger than {self.megabytes} MB (reply_mb); it is given up.",
                limit="bytes",
            )

    def require_plain(self, response: Any) -> None:
        """Raises CollectionLimitError for a body that is packed more than once: a few bytes of it may be any number."""
        codings = ",".join(response.headers_all("content-encoding")).split(",")
        if len([coding for coding in codings if coding.strip().lower() not in ("", "identity")]) > 1:
            raise CollectionLimitError(f"The reply of {self.where} is packed more than once; it is given up.")


class _ClockedSocket:
    """A socket that gives up reading when the time since `start` is over."""

    def __init__(self, inner: socket.socket, limits: ReplyLimits) -> None:
        self._inner = inner
        self._limits = limits
        self._wait_s: float | None = None
        self.start()

    def start(self) -> None:
        self._end = time.monotonic() + self._limits.seconds

    def settimeout(self, seconds: float | None) -> None:
        self._wait_s = seconds
        self._inner.settimeout(seconds)

    def recv(self, size: int) -> bytes:
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise self._limits.late()
        self._inner.settimeout(left_s if self._wait_s is None else min(left_s, self._wait_s))
        try:
            return self._inner.recv(size)
        except TimeoutError:
            if time.monotonic() >= self._end:
                raise self._limits.late() from None
            raise

    def sendall(self, data: bytes) -> None:
        self._inner.sendall(data)

    def fileno(self) -> int:
        return self._inner.fileno()

    def close(self) -> None:
        self._inner.close()


CONNECT_S = 10.0
"""A connection, TLS handshake included, is given up after so long, or after `timeout_s` where that is shorter."""


def _timeouts(timeout_s: float) -> dict[str, float]:
    connect = min(CONNECT_S, timeout_s)
    return {
        "connect_timeout": connect,
        "read_timeout": timeout_s,
        "write_timeout": timeout_s,
        "pool_timeout": timeout_s,
    }


class BoundedTransport(StdlibTransport):  # type: ignore[misc]
    """The client that lm15 makes, with limits for whole replies. Safe for threads."""

    def __init__(self, limits: ReplyLimits, timeout_s: float) -> None:
        super().__init__(**_timeouts(timeout_s))
        self._limits = limits

    def stream(self, request: Any) -> Any:
        response = super().stream(request)
        try:
            self._limits.require_plain(response)
        except CollectionLimitError:
            response.close()
            raise
        response._chunks = self._counted(response._chunks)
        return response

    def post(self, url: str, body: Any, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        """Status, headers and body of the answer to a JSON body. Raises CollectionLimitError and NetworkError."""
        sent = [("Content-Type", "application/json"), *headers.items()]
        request = TransportRequest(method="POST", url=url, headers=sent, body=json.dumps(body).encode())
        with self.stream(request) as response:
            return response.status, response, response.read()

    def _open(self, *args: Any, **kwargs: Any) -> Any:
        connection = super()._open(*args, **kwargs)
        connection.sock = _ClockedSocket(connection.sock, self._limits)
        return connection

    def _send_request(self, conn: Any, *args: Any, **kwargs: Any) -> None:
        conn.sock.start()
        super()._send_request(conn, *args, **kwargs)

    def _counted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._limits.require_room(size)
            yield chunk


class AsyncBoundedTransport(StdlibAsyncTransport):  # type: ignore[misc]
    """The same for asynchronous callers."""

    def __init__(self, limits: ReplyLimits, timeout_s: float) -> None:
        super().__init__(**_timeouts(timeout_s))
        self._limits = limits

    async def _do_stream(self, request: Any) -> Any:
        end = asyncio.get_running_loop().time() + self._limits.seconds
        try:
            async with asyncio.timeout_at(end):
                response = await super()._do_stream(request)
        except TimeoutError:
            raise self._limits.late() from None
        self._limits.require_plain(response)
        response._chunks = self._counted(response._chunks, end)
        return response

    async def _counted(self, chunks: AsyncIterator[bytes], end: float) -> AsyncIterator[bytes]:
        size = 0
        while True:
            try:
                async with asyncio.timeout_at(end):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise self._limits.late() from None
            size += len(chunk)
            self._limits.require_room(size)
            yield chunk


class BoundedEngine(LM15Engine):  # type: ignore[misc]
    """An engine of lm15 that closes the client it was given."""

    def close(self) -> None:
        super().close()
        self.config.transport.close()


class AsyncBoundedEngine(AsyncLM15Engine):  # type: ignore[misc]
    async def aclose(self) -> None:
        await super().aclose()
        await self.config.transport.aclose()
