"""Reads no reply for ever and none of any size: a reply as a whole has a deadline, and a most of bytes.

A time limit for the next byte, which every client has, lets a server write a byte a second for a day; and what a few
kilobytes of gzip hold may fill the memory. LiteLLM's clients, which some providers need, have the first limit alone.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.dspy_internals import AsyncLM15Engine, StdlibAsyncTransport, TransportRequest
from kraq_dspy.models.lms.from_threads import in_loop

CONNECT_S = 10.0
"""A connection, TLS handshake included, is given up after so long, or after `timeout_s` if that is shorter."""


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """What a whole reply may take; `where` names the server and the settings in messages."""

    where: str
    seconds: float
    megabytes: int


class BoundedTransport(StdlibAsyncTransport):  # type: ignore[misc]
    """The client that lm15 makes, with limits for whole replies: past them it raises CollectionLimitError."""

    def __init__(self, limits: ReplyLimits, timeout_s: float) -> None:
        super().__init__(
            connect_timeout=min(CONNECT_S, timeout_s),
            read_timeout=timeout_s,
            write_timeout=timeout_s,
            pool_timeout=timeout_s,
        )
        self._limits = limits

    async def _do_stream(self, request: Any) -> Any:
        end = asyncio.get_running_loop().time() + self._limits.seconds
        try:
            async with asyncio.timeout_at(end):
                response = await super()._do_stream(request)
        except TimeoutError:
            raise self._late() from None

        codings = ",".join(response.headers_all("content-encoding")).split(",")
        if len([coding for coding in codings if coding.strip().lower() not in ("", "identity")]) > 1:
            # A few bytes of such a body may be any number.
            raise CollectionLimitError(f"The reply of {self._limits.where} is packed more than once; kraq abandons it.")
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
                raise self._late() from None

            size += len(chunk)
            if size > self._limits.megabytes << 20:
                raise CollectionLimitError(
                    f"The reply of {self._limits.where} is larger than {self._limits.megabytes} MB (reply_mb); kraq "
                    "abandons it.",
                    limit="bytes",
                )
            yield chunk

    def _late(self) -> CollectionLimitError:
        return CollectionLimitError(
            f"{self._limits.where} was not done with its reply after {self._limits.seconds:g} s (reply_s); it is given "
            "up.",
            limit="seconds",
        )


class ExplainingTransport(BoundedTransport):
    """The client of language models: what a server says about an error is understood in whatever form it comes.

    lm15 reads OpenAI's form alone, {"error": {"message": ...}}; vLLM, FastAPI, proxies and others have their own.
    """

    async def _do_stream(self, request: Any) -> Any:
        response = await super()._do_stream(request)
        if response.status >= 400:
            response._chunks = _explained(response._chunks)
        return response


async def _explained(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield with_reason(b"".join([chunk async for chunk in chunks]))


def with_reason(body: bytes) -> bytes:
    """The body of an error in OpenAI's form, with the server's own reason.

    >>> with_reason(b'{"detail": "The adapter is not here."}')
    b'{"error": {"message": "The adapter is not here."}}'
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = "" if body.lstrip()[:1] == b"<" else body.decode("utf-8", "replace").strip()[:_LONGEST_REASON]

    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str) and error["message"].strip():
        return body

    reason = reason_in(value)
    if not reason:
        return body
    known = {key: value[key] for key in ("type", "code", "param") if isinstance(value, dict) and key in value}
    return json.dumps({"error": {"message": reason, **known}}).encode()


def reason_in(value: Any, depth: int = 5) -> str:
    """Return what a server's JSON says went wrong, under whichever key it does; "" if it says
    nothing.

    >>> reason_in({"detail": [{"loc": ["body", "messages"], "msg": "field required"}]})
    'body.messages: field required'
    """
    if isinstance(value, str):
        return " ".join(value.split())[:_LONGEST_REASON]
    if depth == 0:
        return ""
    if isinstance(value, list):
        reasons = [reason_in(each, depth - 1) for each in value[:5]]
        return "; ".join(reason for reason in reasons if reason)[:_LONGEST_REASON]
    if not isinstance(value, dict):
        return ""

    by_key = (reason_in(value.get(key), depth - 1) for key in _REASONS)
    reason = next(filter(None, by_key), "")
    place = value.get("loc") or value.get("field")
    if reason and place:
        return f"{'.'.join(map(str, place)) if isinstance(place, list) else place}: {reason}"
    return reason


_REASONS = (
    "error", "message", "msg", "detail", "details", "errors", "error_message", "error_description", "description",
    "reason", "title",
)  # fmt: skip
"""Keys under which servers say what went wrong, the likeliest first."""
_LONGEST_REASON = 1000  # characters


class BoundedEngine(AsyncLM15Engine):  # type: ignore[misc]
    """An engine of lm15 that closes the client it was given."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.config.transport.aclose()


class JSONClient:
    """Posts JSON to a server. Safe for threads."""

    def __init__(self, limits: ReplyLimits, timeout_s: float) -> None:
        self._transport = BoundedTransport(limits, timeout_s)

    def post(self, url: str, body: Any, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        """Status, headers and body of the answer. Raises CollectionLimitError and NetworkError."""
        return in_loop(self._posted(url, body, headers))

    async def _posted(self, url: str, body: Any, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        sent = [("Content-Type", "application/json"), *headers.items()]
        request = TransportRequest(method="POST", url=url, headers=sent, body=json.dumps(body).encode())
        async with self._transport.stream(request) as response:
            return response.status, response, await response.read()
