"""Who is served, and where: worked out without a server."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.mcp.http import TokenRequired, address, bound


def test_a_port_that_is_taken_is_a_message_with_the_way_out() -> None:
    with bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address(listening) == f"http://127.0.0.1:{port}/mcp"
        with pytest.raises(ConfigError, match=r"port \d+: .*Choose another --port"):
            bound("127.0.0.1", port)
    with pytest.raises(ConfigError, match="or another --host"):
        bound("203.0.113.7", 0)  # an address of documentation, nobody's


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
