"""Stands before the application: who may ask, how much, how often, and by which name the server is called.

Plain ASGI: nothing is held back or buffered, so answers stream, and a client that goes away is noticed.
"""

import hmac
import ipaddress
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import ceil
from secrets import token_bytes
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kraq_dspy.apps.serve.endpoints import RequestError, as_request_error, body_of, busy
from kraq_dspy.errors import ConfigError

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class ServeSettings:
    """`token` is what a request must bear where one is set; an address beyond this machine needs one.

    `rate` bounds the requests of one client a second (0: no bound), with bursts of ten seconds' worth. `at_once` bounds
    the questions that are answered at the same time, `waiting` those that wait for a place; the next one is refused
    (503). `connections` bounds all requests under way. `hosts` are names by which the server may be called besides
    those of this machine and `host`; `origins` are web pages of elsewhere that may call it. `workers` are the processes
    among which `at_once`, `waiting` and `connections` are divided; each counts `rate` for itself.
    """

    host: str = "127.0.0.1"
    port: int = 8377
    token: str | None = None
    edit: bool = False
    body_bytes: int = 1 << 20
    rate: float = 20.0
    at_once: int = 8
    waiting: int = 64
    connections: int = 512
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if not is_local(self.host) and not self.token:
            raise ConfigError(
                f"{self.host!r} can be reached from other machines, so it needs a token: --token, or the variable "
                "KRAQ_TOKEN. Without one: --host 127.0.0.1"
            )
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or " " in self.token):
            raise ConfigError(
                "The token must have 8 characters or more, of ASCII and without spaces. A good one: "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"--port is {self.port}; a port is a number from 0 to 65535.")
        for name in ("body_bytes", "at_once", "connections", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if self.rate < 0 or self.waiting < 0:
            raise ConfigError(f"rate ({self.rate:g}) and waiting ({self.waiting}) must be 0 or more.")
        if self.at_once < self.workers:
            raise ConfigError(
                f"{self.workers} workers divide the {self.at_once} questions that are answered at once between them: "
                "take fewer --workers, or a larger --at-once."
            )

    def of_worker(self) -> "ServeSettings":
        """Those of one of the processes, with its part of what may be under way."""
        parts = {name: getattr(self, name) // self.workers for name in ("at_once", "waiting", "connections")}
        return replace(self, **{**parts, "connections": max(1, parts["connections"])}, workers=1)

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Host names that a request may be for; None where all are: an address of every network, behind a token."""
        if self.host in ("0.0.0.0", "::", "") and not self.hosts:
            return None
        return LOCAL | {self.host.lower(), *(name.lower() for name in self.hosts)}


def is_local(host: str) -> bool:
    """Whether nobody on another machine can reach this address."""
    if host in LOCAL:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
