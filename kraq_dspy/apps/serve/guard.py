"""Stands before the application: who may ask, how much, and by which name the server is called.

Plain ASGI: nothing is held back or buffered, so answers stream, and a client that goes away is noticed.
"""

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kraq_dspy.apps.serve.callers import ANYBODY, Caller
from kraq_dspy.apps.serve.refusals import RequestError, response_of
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.watch import record_of

LARGEST_BODY = 1 << 20
"""Bytes of a request."""
BODY_S = 30.0
"""A request that has not come as a whole after so long is given up."""


OPEN = ("/health", "/", "/favicon.ico", "/openapi.json")
"""What is answered without a token: nothing of these says what an index holds."""
OPEN_FOLDER = "/page/"

_FIXED = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


class Guard:
    """The application, behind everything that a request must meet first; `app_for` is that of a caller."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, app_for: Callable[[Caller], ASGIApp]) -> None:
        self.app = app
        self.settings = settings
        self._app_for = app_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _FIXED.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            caller = self._check(scope, Headers(scope=scope))
            record_of(scope).who = caller.name
        except RequestError as error:
            await response_of(error)(scope, receive, headed)
        else:
            await self._app_for(caller)(scope, _limited(receive), headed)

    def _check(self, scope: Scope, headers: Headers) -> Caller:
        """Tell who asks. Raises RequestError."""
        self._check_names(headers)
        path = scope["path"]
        is_open = path in OPEN or path.startswith(OPEN_FOLDER)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        caller = self.settings.caller_of(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None and self.settings.needs_token and not is_open:
            challenge = {"WWW-Authenticate": 'Bearer realm="kraq"'}
            raise RequestError(401, "unauthorized", "Send the token: Authorization: Bearer TOKEN", challenge)
        if not is_open and headers.get("sec-fetch-site", "none").lower() not in ("same-origin", "none"):
            raise RequestError(403, "wrong_site", "Cross-origin requests are not allowed.")

        has_body = scope["method"] in ("POST", "PUT", "PATCH")
        if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError(415, "unsupported_media_type", "Send JSON: Content-Type: application/json")
        return caller or ANYBODY

    def _check_names(self, headers: Headers) -> None:
        """A page of elsewhere must not reach the server by a name of its own (DNS rebinding), nor by the visitor's
        browser."""
        host = headers.get("host", "")
        name = _split(f"//{host}")[1] if "@" not in host and "/" not in host else ""
        allowed = self.settings.allowed_hosts
        if allowed is not None and name not in allowed:
            raise RequestError(
                421, "wrong_host", "The server is not called by this name. Names are allowed with --allow-host NAME."
            )
        origin = headers.get("origin")
        if origin and _split(origin)[0] != host.lower():
            raise RequestError(403, "wrong_origin", "Cross-origin requests are not allowed.")


def _split(address: str) -> tuple[str, str]:
    """(host with port, host) of an address in small letters; empty if it is none, such as "//[::1"."""
    try:
        parts = urlsplit(address)
        return parts.netloc.lower(), parts.hostname or ""
    except ValueError:
        return "", ""


def _limited(receive: Receive) -> Receive:
    """Raises RequestError when more comes than is allowed, whatever was announced, or when it takes too long."""
    received = 0
    is_whole = False
    deadline = time.monotonic() + BODY_S

    async def counted() -> Message:
        nonlocal received, is_whole
        if is_whole:  # what comes now is that the client goes away
            return await receive()

        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise RequestError(408, "too_slow", f"The request did not come within {BODY_S:g} s.") from None

        received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if received > LARGEST_BODY:
            raise RequestError(413, "too_large", f"The request is larger than {LARGEST_BODY:,} bytes.")
        return message

    return counted
