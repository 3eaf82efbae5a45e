"""Limits the size of a reply, and keeps the words in which a server refuses a request."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.request import getproxies

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.dspy_internals import StdlibAsyncTransport, TransportRequest

CONNECT_S = 10.0
"""A connection, TLS handshake included, is given up after so long, or after `timeout_s` if that is shorter."""


class LimitedTransport(StdlibAsyncTransport):  # type: ignore[misc]
    """lm15's transport, which raises CollectionLimitError for a reply of more than `megabytes`, unpacked.

    `where` names the server in the message. Each read and each write may take `timeout_s`.
    """

    def __init__(self, where: str, timeout_s: float, megabytes: int) -> None:
        super().__init__(
            connect_timeout=min(CONNECT_S, timeout_s),
            read_timeout=timeout_s,
            write_timeout=timeout_s,
            pool_timeout=timeout_s,
            trust_env=bool(getproxies()),  # else each call looks through the environment for proxies
        )
        self._where, self._megabytes = where, megabytes

    async def post(self, url: str, headers: Mapping[str, str], values: Any) -> tuple[Any, bytes]:
        """Send values as JSON; the answer with its `status`, and its body. Raises CollectionLimitError and
        NetworkError."""
        request = TransportRequest(
            method="POST",
            url=url,
            headers=[("Content-Type", "application/json"), *headers.items()],
            body=json.dumps(values).encode(),
        )
        async with self.stream(request) as response:
            return response, await response.read()

    async def _do_stream(self, request: Any) -> Any:
        response = await super()._do_stream(request)
        response._chunks = self._limited(response._chunks)
        if response.status >= 400:
            response._chunks = _explained(response._chunks)
        return response

    async def _limited(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            if size > self._megabytes << 20:
                raise CollectionLimitError(
                    f"The reply of {self._where} is larger than {self._megabytes} MB (reply_mb); kraq abandons it.",
                    limit="bytes",
                )
            yield chunk


async def _explained(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield with_reason(b"".join([chunk async for chunk in chunks]))


def with_reason(body: bytes) -> bytes:
    """The body of an error in the one form that lm15 reads, OpenAI's; other servers have forms of their own.

    >>> with_reason(b'{"message": "The adapter is not here.", "code": 400}')
    b'{"error": {"message": "The adapter is not here.", "code": 400}}'
    >>> with_reason(b"no such model")
    b'{"error": {"message": "no such model"}}'
    """
    if not body.strip() or body.lstrip()[:1] == b"<":
        return body

    text = body.decode("utf-8", "replace").strip()[:_LONGEST_REASON]
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return json.dumps({"error": {"message": text}}).encode()

    fields = value if isinstance(value, dict) else {}
    if isinstance(fields.get("error"), dict) and fields["error"].get("message"):
        return body
    return json.dumps({"error": {**fields, "message": fields.get("message") or text}}).encode()


_LONGEST_REASON = 1000  # characters
