"""Answers the requests of the JSON API; `endpoints` says under which address each stands.

A function that waits for models is a coroutine; the others read the index and run in threads.
"""

from dataclasses import asdict, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kraq_dspy.apps.serve import listing, openai
from kraq_dspy.apps.serve.asking import (
    CONTENT_TYPE,
    AnswerSlots,
    Metrics,
    ProgramCall,
    Slot,
    as_it_comes,
    ask,
    server_sent,
    stream,
    while_connected,
)
from kraq_dspy.apps.serve.atlas import Atlas
from kraq_dspy.apps.serve.endpoints import (
    KINDS,
    AskRequest,
    CatalogueQuery,
    ChatRequest,
    CommunitiesQuery,
    DocumentsQuery,
    EntitiesQuery,
    GraphQuery,
    PageQuery,
    Query,
    QuestionsQuery,
    RequestError,
    ReviewRequest,
    SearchQuery,
    StartersQuery,
    as_request_error,
    declared,
    get,
    not_found,
    post,
)
from kraq_dspy.apps.serve.guard import ServeSettings
from kraq_dspy.apps.serve.listing import coverage_picture, page_of, search
from kraq_dspy.apps.serve.served import Served, ServedIndex
from kraq_dspy.asset.store.catalogue import Catalogue
from kraq_dspy.build.catalogue.review import answer, approve, evidence_for, source_states, waiting
from kraq_dspy.errors import CatalogueConflictError, CatalogueError, UnknownRecordError
from kraq_dspy.records import CatalogueEntry
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM

Json = dict[str, Any]
GONE = 499
"""The status under which a client that went away is counted."""


class Api:
    """What the answers are made of."""

    def __init__(self, served: Served, settings: ServeSettings) -> None:
        self.served = served
        self.settings = settings
        self.slots = AnswerSlots(settings.at_once, settings.waiting)
        self.metrics = Metrics(self.slots)

    # What an index holds

    @get("/api/status", "Index", "What the index holds, and the programs and retrievers there are.")
    def status(self, query: Query) -> Json:
        return {**listing.status_json(self.served[query.index]), "indexes": list(self.served.by_name), "can_ask": True}

    @get("/api/questions", "Index", "The representative questions, broadest first.")
    def questions(self, query: QuestionsQuery) -> Json:
        listed = self._atlas(query).questions
        if query.level is not None:
            listed = [each for each in listed if each.level == query.level]
        listed = listing.with_words(listed, query.q, lambda each: each.text.casefold())
        return listing.page_of(listed, query, listing.question_json)

    @get("/api/starters", "Index", "Questions to begin with: answerable, and about most of it.")
    def starters(self, query: StartersQuery) -> Json:
        served = self.served[query.index]
        chosen = served.kept(("starters", query.limit), lambda: served.space.starters(query.limit))
        return {"items": [each.to_dict() for each in chosen]}

    @get("/api/communities", "Index", "Communities, broadest and largest first.")
    def communities(self, query: CommunitiesQuery) -> Json:
        atlas = self._atlas(query)
        listed = list(atlas.communities.values()) if query.parent is None else atlas.children.get(query.parent, [])
        if query.level is not None:
            listed = [each for each in listed if each.level == query.level]
        if query.telling:
            listed = [each for each in listed if each.question or each.n_children]
        if query.single is not None:
            listed = [each for each in listed if (each.n_passages == 1) is query.single]
        return listing.page_of(listed, query, asdict)

    @get(
        "/api/communities/{id}",
        "Index",
        "A community: what is above and below it, its summary, entities and first passages.",
    )
    def community(self, query: Query, id: str) -> Json:
        return listing.community_json(self._atlas(query), id)

    @get("/api/communities/{id}/passages", "Index", "Its passages, in reading order.")
    def community_passages(self, query: PageQuery, id: str) -> Json:
        return self._passages(query, "community", id)

    @get("/api/communities/{id}/graph", "Index", "Its entities and their neighbourhood.")
    def community_graph(self, query: GraphQuery, id: str) -> Json:
        return listing.community_graph(self._atlas(query), id, limit=query.limit)

    @get("/api/entities", "Index", "Entities, best connected first.")
    def entities(self, query: EntitiesQuery) -> Json:
        listed = list(self._atlas(query).entities.values())
        if query.type is not None:
            listed = [each for each in listed if each.type == query.type]
        listed = listing.with_words(listed, query.q, lambda each: each.folded)
        return listing.page_of(listed, query, listing.entity_brief)

    @get("/api/entities/{id}", "Index", "An entity: its links, claims, communities and first passages.")
    def entity(self, query: Query, id: str) -> Json:
        return listing.entity_json(self._atlas(query), id)

    @get("/api/entities/{id}/passages", "Index", "Passages that mention it.")
    def entity_passages(self, query: PageQuery, id: str) -> Json:
        return self._passages(query, "entity", id)

    @get("/api/entities/{id}/graph", "Index", "It and what is next to it.")
    def entity_graph(self, query: GraphQuery, id: str) -> Json:
        return listing.entity_graph(self._atlas(query), id, limit=query.limit)

    @get("/api/documents", "Index", "Ids and titles of documents.")
    def documents(self, query: DocumentsQuery) -> Json:
        titles = list(self._atlas(query).titles.items())
        listed = listing.with_words(titles, query.q, lambda each: f"{each[1]} {each[0]}".casefold())
        return listing.page_of(listed, query, lambda each: {"id": each[0], "title": each[1]})

    @get("/api/documents/{id:path}", "Index", "A document's text with its passages, and the questions that lead to it.")
    def document(self, query: Query, id: str) -> Json:
        return listing.document_json(self._atlas(query), id)

    @get("/api/search", "Search", "Questions, entities and passages, as one types.")
    def search(self, query: SearchQuery) -> Json:
        kinds = tuple(kind.strip() for kind in query.kinds.split(",") if kind.strip())
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise RequestError(422, "invalid_kinds", f"There is no {unknown[0][:50]!r}; there are: {', '.join(KINDS)}.")
        served = self.served[query.index]
        return search(served, query.q, limit=query.limit, kinds=kinds, retriever=query.retriever)

    @get("/api/coverage", "Index", "How much of the corpus its questions cover.")
    def coverage(self, query: Query) -> Json:
        served = self.served[query.index]
        picture: Json = served.kept("coverage", lambda: coverage_picture(served))
        return picture

    def _atlas(self, query: Query) -> Atlas:
        return self.served[query.index].atlas

    def _passages(self, query: PageQuery, kind: str, id: str) -> Json:
        atlas = self._atlas(query)
        chunk_ids = listing.record(atlas.index, kind, id).chunk_ids
        return listing.passages_json(atlas, chunk_ids, query.offset, query.limit)

    # The catalogue

    @get("/api/catalogue", "Catalogue", "Prepared answers, those that wait for review first.")
    def entries(self, query: CatalogueQuery) -> Json:
        return catalogue_entries(self.served[query.index], query)

    @get("/api/catalogue/{number:int}", "Catalogue", "An entry with its evidence and its versions.")
    def entry(self, query: Query, number: int) -> Json:
        return catalogue_entry(self.served[query.index], number)

    @post("/api/catalogue/{number:int}", "Catalogue", "Approve, edit or reject an entry (--edit).")
    def review(self, body: ReviewRequest, number: int) -> Json:
        return decide(self.served[body.index], number, body)

    # Asking

    @post(
        "/api/ask",
        "Ask",
        "An answer with its evidence; as server-sent events where stream is true.",
        produces="text/event-stream",
    )
    async def ask(self, request: Request, body: AskRequest) -> Any:
        """Raises RequestError before anything is answered; later, a stream says what went wrong as an event."""
        program = body.program or DEFAULT_PROGRAM
        asking = await self._asked(self.served[body.index], program, body.question, body.retriever, body.options)
        if not (body.program or body.retriever or body.options):
            asking = replace(asking, may_be_prepared=True)
        self.slots.require_free()
        if body.stream:
            return self._streaming(asking, (server_sent(*each) async for each in stream(asking)))
        return await self._answered(request, asking)

    @post("/v1/chat/completions", "OpenAI", "A program answers what the user said last.", produces="text/event-stream")
    async def chat(self, request: Request, body: ChatRequest) -> Any:
        served, program, question = openai.asked_of(self.served, body)
        asking = await self._asked(served, program, question)
        self.slots.require_free()
        if body.stream:
            return self._streaming(asking, openai.chunks(asking, body))
        answer = await self._answered(request, asking)
        return answer if isinstance(answer, Response) else openai.completion(body.model, answer)

    @get("/v1/models", "OpenAI", "The programs, as models.")
    def models(self, query: Query) -> Json:
        return openai.models(self.served)

    @get("/v1/models/{id:path}", "OpenAI", "One of them.")
    def model(self, query: Query, id: str) -> Json:
        return openai.model(self.served, id)

    async def _asked(
        self, served: ServedIndex, program: str, question: str, retriever: str | None = None, options: Any = None
    ) -> ProgramCall:
        if not question.strip():
            raise RequestError(422, "invalid_request", "The question is empty.")
        choice, made = await run_in_threadpool(served.program, program, retriever, options)
        return ProgramCall(served, choice, made, question.strip(), Slot(self.slots))

    async def _answered(self, request: Request, call: ProgramCall) -> Any:
        outcome = "failed"
        try:
            answer = await while_connected(request, ask(call), call.slot)
            outcome = "gone" if answer is None else "answered"
        finally:
            self.metrics.questions.labels(call.choice.spec.name, outcome).inc()
        return Response(status_code=GONE) if answer is None else answer

    def _streaming(self, call: ProgramCall, events: Any) -> Response:
        self.metrics.questions.labels(call.choice.spec.name, "streamed").inc()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(as_it_comes(events, call.slot), media_type="text/event-stream", headers=headers)

    # How it is

    @get("/health", "Server", "Whether the server runs. Needs no token.")
    def health(self, query: Query) -> Json:
        return {"status": "ok"}

    @get("/ready", "Server", "Whether its indexes can be read and searched. Needs no token.")
    def ready(self, query: Query) -> Json:
        """Raises RequestError where an index cannot be read or searched."""
        for each in self.served:
            try:
                each.index.chunk_vectors.count()
                each.index.deepest_level()
            except Exception as error:
                raise RequestError(503, "not_ready", as_request_error(error).message) from error
        return {"status": "ready"}

    @get("/metrics", "Server", "Counts and times in Prometheus's format.", produces="text/plain")
    def metrics_text(self, query: Query) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)


ENDPOINTS = declared(Api)
"""All addresses, in their order."""


REVIEWER = "kraq explore"
"""Who changed an entry, in its words; a page knows no names."""


def catalogue_entries(served: ServedIndex, query: CatalogueQuery) -> dict[str, Any]:
    """Some entries; what waits comes in the order in which it is worth a look."""
    catalogue = served.catalogue
    if catalogue is None:
        return {"exists": False, "counts": {}, "total": 0, "offset": 0, "items": []}
    listed = waiting(catalogue) if query.status == "waiting" else catalogue.entries(query.status)
    return {"exists": True, "counts": catalogue.counts(), **page_of(listed, query, _brief)}


def catalogue_entry(served: ServedIndex, number: int) -> dict[str, Any]:
    """An entry with what its answer can be judged by, and its versions."""
    return _whole(served, _catalogue(served), number)


def decide(served: ServedIndex, number: int, decision: ReviewRequest) -> dict[str, Any]:
    """The entry as it is then. Raises RequestError where the server may not edit, where somebody changed the entry
    meanwhile, and where an answer lacks or rests on a document that is not there."""
    if not served.edit:
        raise RequestError(403, "read_only", "This server is read-only; start it with --edit to review.")
    catalogue = _catalogue(served)
    _existing(catalogue, number)
    here: Any = {"by": REVIEWER, "version": decision.version}
    try:
        if decision.action == "reject":
            catalogue.remove(number, **here)
            return {"number": number, "status": "removed"}
        if decision.action == "edit":
            answer(served.index, catalogue, number, decision.answer or "", document_ids=decision.document_ids, **here)
        else:
            approve(served.index, catalogue, number, **here)
    except CatalogueConflictError as error:
        raise RequestError(409, "changed", str(error)) from None
    except UnknownRecordError:
        raise RequestError(422, "no_such_document", "The index has no document of one of these ids.") from None
    return _whole(served, catalogue, number)


def _catalogue(served: ServedIndex) -> Catalogue:
    if served.catalogue is None:
        raise RequestError(404, "no_catalogue", "This index has no catalogue of prepared answers yet.")
    return served.catalogue


def _existing(catalogue: Catalogue, number: int) -> CatalogueEntry:
    try:
        return catalogue.get(number)
    except (CatalogueError, OverflowError):  # a number too large for the table is not there
        raise not_found("entry", str(number)) from None


def _brief(entry: CatalogueEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in ("number", "question", "status", "origin", "asked", "version")} | {
        "answer": entry.answer[:300]
    }


def _whole(served: ServedIndex, catalogue: Catalogue, number: int) -> dict[str, Any]:
    entry = _existing(catalogue, number)
    titles = served.atlas.titles
    return {
        **asdict(entry),
        "evidence": [asdict(each) for each in evidence_for(served.index, entry, 5)],
        "sources": [
            {"document_id": each, "title": titles.get(each, each), "state": state}
            for each, state in source_states(served.index, entry).items()
        ],
    }
