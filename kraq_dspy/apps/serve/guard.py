"""Stands before the application: who may ask, how much, how often, and by which name the server is called.

Plain ASGI: nothing is held back or buffered, so answers stream, and a client that goes away is noticed.
"""

import hmac
import time
from array import array
from collections.abc import Callable
from hashlib import blake2b
from math import ceil
from secrets import token_bytes
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kraq_dspy.apps.serve.errors import RequestError, as_request_error, body_of, busy
from kraq_dspy.apps.serve.settings import ServeSettings

OPEN = ("/health", "/ready", "/", "/favicon.ico")
"""What is answered without a token: nothing of these says what an index holds."""
OPEN_FOLDER = "/page/"

BURST_S = 10
WRONG_TOKENS = 1.0
"""A client may send so many wrong tokens a second, with the same bursts; then no token of its is looked at."""
BUCKETS = 1 << 14
"""For the rates of clients; two clients of thousands may share one."""

_FIXED = {
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
    """The application, behind everything that a request must meet first."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app = app
        self.settings = settings
        self.rates = Rates(settings.rate, time.monotonic)
        self.wrong_tokens = Rates(WRONG_TOKENS, time.monotonic)
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        send = _with_headers(send, origin if origin in self.settings.origins else None)
        try:
            if preflight := self._checked(scope, headers):
                await preflight(scope, receive, send)
                return
        except RequestError as error:
            await response_of(error)(scope, receive, send)
            return
        self.under_way += 1
        try:
            await self.app(scope, _limited(receive, self.settings.body_bytes), send)
        finally:
            self.under_way -= 1

    def _checked(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a browser that asks whether it may ask. Raises RequestError."""
        settings = self.settings
        if self.under_way >= settings.connections:
            raise busy("The server is busy.", 1)
        self._check_names(headers)
        path = scope["path"]
        if scope["method"] == "OPTIONS" and headers.get("origin") in settings.origins:
            return Response(status_code=204)
        is_open = path in OPEN or path.startswith(OPEN_FOLDER)
        client = (scope.get("client") or ("",))[0]
        if settings.token and not is_open:
            self._check_token(headers.get("authorization", ""), settings.token, client)
        if not is_open and (wait := self.rates.wait(client)):
            raise busy("Too many requests.", wait, status=429)
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise RequestError(400, "bad_request", "Content-Length is no number.")
        if int(length) > settings.body_bytes:
            raise too_large(settings.body_bytes)
        has_body = scope["method"] in ("POST", "PUT", "PATCH")
        if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError(415, "unsupported_media_type", "Send JSON: Content-Type: application/json")
        return None

    def _check_token(self, authorization: str, token: str, client: str) -> None:
        """Whoever tries many tokens waits, and learns nothing meanwhile: the right one is refused as well."""
        if wait := self.wrong_tokens.wait(client, takes=False):
            raise busy("Too many wrong tokens.", wait, status=429)
        if not _bears(authorization, token):
            if authorization:
                self.wrong_tokens.wait(client)
            challenge = {"WWW-Authenticate": 'Bearer realm="kraq"'}
            raise RequestError(401, "unauthorized", "Send the token: Authorization: Bearer TOKEN", challenge)

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
        if origin and origin not in self.settings.origins and _split(origin)[0] != host.lower():
            raise RequestError(403, "wrong_origin", "Pages of elsewhere may not ask here (--allow-origin ORIGIN).")


class Rates:
    """A bucket for each client that fills by `rate` a second, up to ten seconds' worth, and loses one a request.

    A client's bucket is one of `BUCKETS`, by a salted hash of its address, so memory is bounded.
    """

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self.rate = rate
        self.most = max(1.0, rate * BURST_S)
        self.clock = clock
        self._memory = array("d", bytes(16 * BUCKETS))  # two numbers a bucket: what is missing, and since when
        self._salt = token_bytes(16)

    def wait(self, client: str, *, takes: bool = True) -> int:
        """0 where the client may ask now, else the whole seconds until it may. Without `takes` it only looks."""
        if not self.rate:
            return 0
        now = self.clock()
        digest = blake2b(client.encode(), digest_size=4, key=self._salt).digest()
        bucket = 2 * (int.from_bytes(digest) % BUCKETS)
        missing = max(0.0, self._memory[bucket] - (now - self._memory[bucket + 1]) * self.rate)
        may = self.most - missing >= 1
        self._memory[bucket], self._memory[bucket + 1] = missing + (may and takes), now
        return 0 if may else ceil((1 - self.most + missing) / self.rate)


def _split(address: str) -> tuple[str, str]:
    """(host with port, host) of an address in small letters; empty where it is none, such as "//[::1"."""
    try:
        parts = urlsplit(address)
        return parts.netloc.lower(), parts.hostname or ""
    except ValueError:
        return "", ""


def response_of(error: BaseException) -> Response:
    refused = as_request_error(error)
    return JSONResponse(body_of(refused), refused.status, headers=dict(refused.headers))


def too_large(limit: int) -> RequestError:
    return RequestError(413, "too_large", f"The request is larger than {limit:,} bytes.")


def _bears(authorization: str, token: str) -> bool:
    scheme, _, borne = authorization.partition(" ")
    right = hmac.compare_digest(borne.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and right


def _limited(receive: Receive, limit: int) -> Receive:
    """Raises RequestError when more comes than was announced and allowed."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit)
        return message

    return counted


def _with_headers(send: Send, origin: str | None) -> Send:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _FIXED.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
            if origin:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
                headers["Access-Control-Allow-Methods"] = "GET, POST"
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                headers["Vary"] = "Origin"
        await send(message)

    return headed
