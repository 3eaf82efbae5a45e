"""Serves the protocol over HTTP: on this machine alone, or to whoever has the token."""

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

PATH = "/mcp"
LARGEST_REQUEST = 1_000_000  # bytes

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def http_app(server: Any, host: str, token: str | None) -> App:
    """The protocol's application for `serve.server.run`. No sessions are kept, so memory does not grow with clients."""
    app: App = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, max_request_body_size=LARGEST_REQUEST, host=host
    )
    return TokenRequired(app, token) if token else app


class TokenRequired:
    """An ASGI application that answers 401 to whoever does not send `Authorization: Bearer TOKEN`."""

    def __init__(self, app: App, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        sent = dict(scope.get("headers") or ()).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(sent, self.expected):
            await self.app(scope, receive, send)
            return
        body = json.dumps({"error": "Send the server's token: Authorization: Bearer TOKEN"}).encode()
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})
