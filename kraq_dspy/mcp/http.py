"""Serves the protocol over HTTP: on this machine alone, or to whoever has the token."""

import hmac
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from kraq_dspy.errors import ConfigError

PATH = "/mcp"
LOCAL = ("127.0.0.1", "localhost", "::1")
LARGEST_REQUEST = 1_000_000  # bytes

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def bound(host: str, port: int) -> socket.socket:
    """Listens at once, so that a port that is taken is known before anything is loaded. Port 0 takes a free one.

    Raises ConfigError for a port that is taken or a host that is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Nothing can be served at {host}, port {port}: {error.strerror or error}. Choose another --port "
            "(0 takes a free one), or another --host."
        ) from error


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


async def serve_http(server: Any, listening: socket.socket, host: str, token: str | None) -> None:
    """Until it is interrupted. No sessions are kept, so memory does not grow with clients."""
    import uvicorn

    app: Any = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, max_request_body_size=LARGEST_REQUEST, host=host
    )
    if token:
        app = TokenRequired(app, token)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    await uvicorn.Server(config).serve(sockets=[listening])


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
