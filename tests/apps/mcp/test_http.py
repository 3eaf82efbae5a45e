"""Who is served: worked out without a server."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from kraq_dspy.apps.mcp.server import TokenRequired


@pytest.mark.parametrize(
    ("sent", "status"), [(b"Bearer secret", 200), (b"Bearer secre", 401), (b"secret", 401), (None, 401)]
)
def test_only_the_whole_token_is_let_through(sent: bytes | None, status: int) -> None:
    async def app(
        scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        await send({"type": "http.response.start", "status": 200})

    statuses = []

    async def send(message: dict[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])

    headers = [] if sent is None else [(b"authorization", sent)]
    scope = {"type": "http", "headers": headers}
    asyncio.run(TokenRequired(app, "secret")(scope, lambda: asyncio.sleep(0), send))
    assert statuses == [status]
