"""Puts the application together: the addresses of the API, the page's files, and the guard before all."""

import asyncio
import functools
import hashlib
import inspect
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from kraq_dspy.apps.serve import requests
from kraq_dspy.apps.serve.access_log import AccessLog
from kraq_dspy.apps.serve.api import GONE, Api
from kraq_dspy.apps.serve.asking import AnswerSlots
from kraq_dspy.apps.serve.callers import Caller
from kraq_dspy.apps.serve.chat_completions import ChatCompletions, ChatRequest, NoParameters
from kraq_dspy.apps.serve.guard import Guard
from kraq_dspy.apps.serve.labels import LabelApi
from kraq_dspy.apps.serve.metrics import Metrics
from kraq_dspy.apps.serve.openapi import described
from kraq_dspy.apps.serve.question_log import AskedLog
from kraq_dspy.apps.serve.refusals import Json, RequestError, response_of
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.apps.serve.testsets import TestsetApi
from kraq_dspy.apps.serve.watch import Watch, record_of
from kraq_dspy.asset.scope import Scope

THREADS = 16
"""For what programs do besides waiting, over the questions answered at once."""


def make_app(
    served: Mapping[str, ServedIndex],
    settings: ServeSettings,
    *,
    access_log: AccessLog | None = None,
    question_log: AskedLog | None = None,
) -> ASGIApp:
    """The ASGI application of these indexes.

    A caller who may ask only some indexes gets an application with these alone, so that no address
    can show another one. For an index with labels, it has only the documents that the caller may
    read.
    """
    slots = AnswerSlots(settings.workers, settings.queue)
    metrics = Metrics(lambda: slots.in_use, lambda: slots.waiting)

    def api_over(indexes: Mapping[str, ServedIndex]) -> Api:
        return Api(indexes, slots, no_refuse=settings.no_refuse, question_log=question_log)

    full = api_over(served)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        pool = ThreadPoolExecutor(settings.workers + THREADS, thread_name_prefix="kraq-serve")
        asyncio.get_running_loop().set_default_executor(pool)
        try:
            yield
        finally:
            for each in served.values():
                await each.space.models.aclose()
            pool.shutdown(wait=False, cancel_futures=True)

    page = page_routes()

    async def show_metrics(request: Request) -> Response:
        return Response(await run_in_threadpool(metrics.text), media_type=CONTENT_TYPE_LATEST)

    def app_of(api: Api, *more: Route, **options: Any) -> Starlette:
        routes = [*api_routes(api), *page, *more]
        made = Starlette(routes=routes, exception_handlers={HTTPException: _unknown}, **options)
        made.router.redirect_slashes = False  # an address with a slash too many is unknown, and leads nowhere else
        return made

    metrics_route = Route("/metrics", show_metrics, methods=["GET"])
    app = app_of(full, metrics_route, lifespan=lifespan)
    app.state.api = full

    @functools.cache
    def app_over(names: frozenset[str], scope: Scope | None, _labelled: frozenset[str]) -> Starlette:
        allowed = {name: each for name, each in served.items() if name in names}
        if scope is not None:
            allowed = {name: each.scoped(scope) for name, each in allowed.items()}
        reads_all = scope is not None and scope.is_everything and names == served.keys()
        more = [metrics_route] if reads_all else []
        return app_of(api_over(allowed), *more)

    def app_for(caller: Caller) -> ASGIApp:
        if caller.indexes is None and caller.scope is None:
            return app
        names = frozenset(served) if caller.indexes is None else caller.indexes
        if caller.scope is None:
            return app_over(names, None, frozenset())
        return app_over(names, caller.scope, frozenset(name for name in names if served[name].has_labels))

    notes = [metrics.note] if access_log is None else [metrics.note, access_log.note]
    return Watch(Guard(app, settings, app_for), notes)


def api_routes(api: Api) -> list[Route]:
    """Each address with the method of the API that answers, and what its parameters or its body may be."""
    reading: list[tuple[str, Callable[..., Any], type[BaseModel]]] = [
        ("/api/status", api.status, requests.Query),
        ("/api/questions", api.questions, requests.QuestionsQuery),
        ("/api/starters", api.starters, requests.StartersQuery),
        ("/api/communities", api.communities, requests.CommunitiesQuery),
        ("/api/communities/{id}", api.community, requests.Query),
        ("/api/communities/{id}/passages", api.community_passages, requests.PageQuery),
        ("/api/communities/{id}/graph", api.community_graph, requests.GraphQuery),
        ("/api/entities/{id}", api.entity, requests.Query),
        ("/api/entities/{id}/passages", api.entity_passages, requests.PageQuery),
        ("/api/entities/{id}/graph", api.entity_graph, requests.GraphQuery),
        ("/api/documents/{id:path}", api.document, requests.Query),
        ("/api/search", api.search, requests.SearchQuery),
        ("/api/faq", api.entries, requests.FaqQuery),
        ("/api/faq/{number:int}", api.entry, requests.Query),
        ("/health", api.health, requests.Query),
    ]
    posting: list[tuple[str, Callable[..., Any], type[BaseModel]]] = [
        ("/api/faq/{number:int}", api.review, requests.ReviewRequest),
        ("/api/search", api.search, requests.SearchQuery),
        ("/api/ask", api.ask, requests.AskRequest),
    ]
    chat, testsets, labels = ChatCompletions(api), TestsetApi(api), LabelApi(api)
    reading += [
        ("/api/desk", testsets.desk, requests.Query),
        ("/api/coverage", testsets.coverage, requests.CoverageQuery),
        ("/api/testset", testsets.rows, requests.TestsetQuery),
        ("/api/testset/{id}", testsets.row, requests.Query),
        ("/api/label", labels.state, requests.Query),
        ("/v1/models", chat.models, NoParameters),
        ("/v1/models/{id:path}", chat.model, NoParameters),
    ]
    posting += [
        ("/api/coverage/rows", testsets.offer, requests.OfferRequest),
        ("/api/testset/{id}", testsets.decide, requests.RowRequest),
        ("/api/label", labels.decide, requests.LabelRequest),
        ("/v1/chat/completions", chat.complete, ChatRequest),
    ]

    @functools.cache
    def description() -> Response:
        return Json(described(reading, posting))  # a quarter of a second, which few servers need

    async def describe(request: Request) -> Response:
        return description()

    return [
        *(Route(path, _handler(path, answer, model), methods=["GET"]) for path, answer, model in reading),
        *(Route(path, _handler(path, answer, model), methods=["POST"]) for path, answer, model in posting),
        Route("/openapi.json", describe, methods=["GET"]),
    ]


def _handler(path: str, answer: Callable[..., Any], model: type[BaseModel]) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        record_of(request.scope).address = path
        try:
            parameters = await _read(request, model)
            if inspect.iscoroutinefunction(answer):
                value = await answer(request, parameters, **request.path_params)
                return value if isinstance(value, Response) else Json(value)
            return await run_in_threadpool(lambda: Json(answer(parameters, **request.path_params)))
        except ClientDisconnect:
            return Response(status_code=GONE)
        except Exception as error:  # noqa: BLE001 (a client gets an answer to everything; the log has the error)
            return response_of(error)

    return handle


async def _read(request: Request, model: type[BaseModel]) -> BaseModel:
    """Raises RequestError."""
    try:
        if request.method == "POST":
            if request.query_params and model.model_config.get("extra") == "forbid":
                named = ", ".join(request.query_params)
                raise RequestError(
                    422, "invalid_request", f"The address has the parameters {named}; send them in the JSON body."
                )
            return model.model_validate_json(await request.body())
        return model.model_validate(dict(request.query_params))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        if faults[0]["type"] == "json_invalid":
            raise RequestError(400, "invalid_json", f"The body is no JSON: {faults[0]['msg']}.") from None
        words = [": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in faults[:5]]
        raise RequestError(422, "invalid_request", f"{'; '.join(words)}.") from None


def page_routes() -> list[Route]:
    """The page's files, read once: nothing but these can be asked for."""
    routes = []
    for file in files("kraq_dspy.apps.serve").joinpath("page").iterdir():
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        answer = _constant(file.read_bytes(), "text/javascript" if file.name.endswith(".js") else kind)
        also = {"index.html": ["/"], "icon.svg": ["/favicon.ico"]}.get(file.name, [])
        routes += [Route(path, answer, methods=["GET"]) for path in (f"/page/{file.name}", *also)]
    return routes


def _constant(content: bytes, kind: str) -> Callable[[Request], Any]:
    tag = f'"{hashlib.blake2b(content, digest_size=8).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return answer


async def _unknown(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        headers = dict(error.headers or {})
        return response_of(RequestError(405, "method_not_allowed", "This address takes another method.", headers))
    return response_of(RequestError(404, "no_such_address", "There is nothing at this address."))
