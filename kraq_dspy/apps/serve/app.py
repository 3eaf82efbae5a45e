"""Puts the application together: routes from the table of endpoints, the page's files, and the guard before all."""

import asyncio
import hashlib
import inspect
import json
import mimetypes
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kraq_dspy.apps.serve.api import ENDPOINTS, GONE, Api
from kraq_dspy.apps.serve.asking import Metrics
from kraq_dspy.apps.serve.endpoints import Endpoint, RequestError, openapi
from kraq_dspy.apps.serve.guard import Guard, ServeSettings, response_of
from kraq_dspy.apps.serve.served import Served

THREADS = 16
"""For what programs do besides waiting, over the questions answered at once."""

BODY_S = 30.0
"""A client has so long to send what it wants."""

ROUTE = "kraq_route"


def make_app(served: Served, settings: ServeSettings) -> ASGIApp:
    """The ASGI application of these indexes."""
    api = Api(served, settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        pool = ThreadPoolExecutor(settings.at_once + THREADS, thread_name_prefix="kraq-serve")
        asyncio.get_running_loop().set_default_executor(pool)
        try:
            yield
        finally:
            for each in served:
                await each.space.models.aclose()
            pool.shutdown(wait=False, cancel_futures=True)

    document = json.dumps(openapi(ENDPOINTS, settings.token is not None)).encode()
    routes = [Route(each.path, _handler(api, each), methods=[each.method]) for each in ENDPOINTS]
    routes.append(Route("/api/openapi.json", _constant(document, "application/json"), methods=["GET"]))
    routes += _page_routes()
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _unknown})
    app.state.api = api
    return CountingMiddleware(Guard(app, settings), api.metrics)


class CountingMiddleware:
    """The application, its answers counted and timed by route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = GONE, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            route = scope.get(ROUTE, "other")
            self.metrics.requests.labels(scope["method"] if route != "other" else "", route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)


class Json(JSONResponse):
    """As UTF-8; half of a surrogate pair, which a corpus may hold, goes as its escape."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _handler(api: Api, endpoint: Endpoint) -> Callable[[Request], Any]:
    answer = getattr(api, endpoint.name)
    waits = inspect.iscoroutinefunction(answer)

    async def handle(request: Request) -> Response:
        request.scope[ROUTE] = endpoint.path
        try:
            parameters = await _read(request, endpoint)
            if waits:
                value = await answer(request, parameters, **request.path_params)
            else:
                value = await run_in_threadpool(answer, parameters, **request.path_params)
            return value if isinstance(value, Response) else await run_in_threadpool(Json, value)
        except ClientDisconnect:
            return Response(status_code=GONE)
        except Exception as error:  # noqa: BLE001 (a client gets an answer to everything; the log has the error)
            return response_of(error)

    return handle


async def _read(request: Request, endpoint: Endpoint) -> BaseModel:
    """Raises RequestError."""
    try:
        if endpoint.method == "POST":
            return endpoint.model.model_validate_json(await asyncio.wait_for(request.body(), BODY_S))
        return endpoint.model.model_validate(dict(request.query_params))
    except TimeoutError:
        raise RequestError(408, "too_slow", f"The body did not come within {BODY_S:.0f} s.") from None
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        if faults[0]["type"] == "json_invalid":
            raise RequestError(400, "invalid_json", f"The body is no JSON: {faults[0]['msg']}.") from None
        words = [": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in faults[:5]]
        raise RequestError(422, "invalid_request", f"{'; '.join(words)}.") from None


def _page_routes() -> list[Route]:
    """The page's files, read once: nothing but these can be asked for."""
    routes = []
    for file in files("kraq_dspy.apps.serve").joinpath("page").iterdir():
        kind = {".js": "text/javascript", ".html": "text/html", ".css": "text/css"}.get(
            f".{file.name.rpartition('.')[2]}", mimetypes.guess_type(file.name)[0] or "text/plain"
        )
        content = file.read_bytes()
        routes.append(Route(f"/page/{file.name}", _constant(content, kind), methods=["GET"]))
        if file.name == "index.html":
            routes.append(Route("/", _constant(content, kind), methods=["GET"]))
        if file.name == "icon.svg":
            routes.append(Route("/favicon.ico", _constant(content, kind), methods=["GET"]))
    return routes


def _constant(content: bytes, kind: str) -> Callable[[Request], Any]:
    tag = f'"{hashlib.blake2b(content, digest_size=8).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def answer(request: Request) -> Response:
        request.scope[ROUTE] = "/page"
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return answer


async def _unknown(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return response_of(error)
    if error.status_code == 405:
        headers = dict(error.headers or {})
        return response_of(RequestError(405, "method_not_allowed", "This address takes another method.", headers))
    return response_of(
        RequestError(404, "no_such_address", "There is nothing here; /page/api.html lists what there is.")
    )
