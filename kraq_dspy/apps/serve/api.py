"""Answers the requests of the JSON API; `app` says under which address each stands.

A method that waits for models is a coroutine; the others read the index and run in threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from kraq_dspy._internal.display import shown_model
from kraq_dspy.apps.serve import requests
from kraq_dspy.apps.serve.asking import AnswerSlots, ProgramCall, ask, sent, stream, streaming, while_connected
from kraq_dspy.apps.serve.atlas import Atlas, Json
from kraq_dspy.apps.serve.question_log import AskedLog
from kraq_dspy.apps.serve.refusals import RequestError, not_found
from kraq_dspy.apps.serve.replies import (
    BEGINNING,
    Communities,
    Entity as EntityView,
    FaqItem,
    FaqItems,
    Found,
    Graph,
    Health,
    Program as ProgramView,
    ProgramOption,
    Questions,
    Retriever as RetrieverView,
    Starters,
    Status,
)
from kraq_dspy.apps.serve.search import search, with_words
from kraq_dspy.apps.serve.served import ServedIndex, asks_a_model
from kraq_dspy.apps.serve.watch import record_of
from kraq_dspy.apps.views import Answer, Community as CommunityView, Passages, SuggestedQuestion
from kraq_dspy.asset.store.faq import FaqCache
from kraq_dspy.errors import FaqConflictError, FaqError, UnknownRecordError
from kraq_dspy.indexing.faq.evidence import evidence_for
from kraq_dspy.indexing.faq.review import answer, approve, source_states, waiting
from kraq_dspy.indexing.prepare.preparations import required_commands
from kraq_dspy.records import Community, Entity, Turn
from kraq_dspy.spec import options_of
from kraq_dspy.workspace.asking import Request as AskedRequest
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

GONE = 499
"""The status of an answer that nobody waits for any more."""
REVIEWER = "kraq serve --open"
"""Who the history names; a page knows no names."""


class Api:
    """What the answers are made of: the indexes by name, and places for questions."""

    def __init__(
        self,
        served: Mapping[str, ServedIndex],
        slots: AnswerSlots,
        *,
        no_refuse: bool = False,
        question_log: AskedLog | None = None,
    ) -> None:
        """With `no_refuse` nothing is refused because the documents do not answer it. `question_log` keeps what is
        asked."""
        self.served = served
        self.slots = slots
        self.no_refuse = no_refuse
        self.question_log = question_log

    # What an index holds

    def status(self, query: requests.Query) -> Status:
        return status_of(self.index_of(query), list(self.served))

    def questions(self, query: requests.QuestionsQuery) -> Questions:
        """The representative questions, broadest first."""
        atlas = self._atlas(query)
        listed = atlas.questions
        if query.level is not None:
            listed = [each for each in listed if each.level == query.level]
        page = page_of(with_words(listed, query.q, lambda each: each.text), query)
        return Questions(**{**page, "items": [atlas.question(each) for each in page["items"]]})

    def starters(self, query: requests.StartersQuery) -> Starters:
        """Questions to begin with: answerable, and about most of it."""
        served = self.index_of(query)
        chosen = served.kept(("starters", query.limit), lambda space: space.starters(query.limit))
        return Starters(items=SuggestedQuestion.all_of(chosen))

    def communities(self, query: requests.CommunitiesQuery) -> Communities:
        """Broadest and largest first."""
        atlas = self._atlas(query)
        listed = list(atlas.communities.values()) if query.parent is None else atlas.children.get(query.parent, [])
        if query.level is not None:
            listed = [each for each in listed if each.level == query.level]
        if query.telling:
            listed = [each for each in listed if each.question or each.n_children]
        if query.single is not None:
            listed = [each for each in listed if (each.n_passages == 1) is query.single]
        return Communities(**page_of(listed, query))

    def community(self, query: requests.Query, id: str) -> CommunityView:
        return self._atlas(query).community(id)

    def community_passages(self, query: requests.PageQuery, id: str) -> Passages:
        return self._passages(query, Community, id)

    def community_graph(self, query: requests.GraphQuery, id: str) -> Graph:
        """Its entities and their neighbourhood."""
        atlas = self._atlas(query)
        return atlas.graph(atlas.record(Community, id).entity_ids, limit=query.limit)

    def entity(self, query: requests.Query, id: str) -> EntityView:
        return self._atlas(query).entity(id)

    def entity_passages(self, query: requests.PageQuery, id: str) -> Passages:
        return self._passages(query, Entity, id)

    def entity_graph(self, query: requests.GraphQuery, id: str) -> Graph:
        """It and what is next to it."""
        atlas = self._atlas(query)
        return atlas.graph([atlas.record(Entity, id).id], limit=query.limit)

    def document(self, query: requests.Query, id: str) -> Json:
        return self._atlas(query).document(id)

    async def search(self, request: Request, query: requests.SearchQuery) -> Found:
        """Questions, entities and passages, as one types. A search that does more than look
        words up counts as one of the concurrent questions. A search that calls a model needs
        POST, so that no link and no picture can start it."""
        kinds = tuple(kind.strip() for kind in query.kinds.split(",") if kind.strip())
        if unknown := [kind for kind in kinds if kind not in requests.KINDS]:
            raise RequestError(
                422, "invalid_kinds", f"There is no {unknown[0][:50]!r}; there are: {', '.join(requests.KINDS)}."
            )
        served = self.index_of(query)
        find: Callable[[], Found] = partial(
            search, served, query.q, limit=query.limit, kinds=kinds, retriever=query.retriever
        )
        if query.retriever == requests.BY_WORDS:
            return await run_in_threadpool(find)

        retriever = await run_in_threadpool(served.retriever, query.retriever)
        if request.method != "POST" and asks_a_model(retriever):
            raise RequestError(
                405,
                "asks_a_model",
                f"The retriever {query.retriever!r} asks a language model, which an address alone may not. Send the "
                "same parameters as JSON: POST /api/search",
                {"Allow": "POST"},
            )
        async with self.slots.slot():
            return await run_in_threadpool(find)

    def index_of(self, query: requests.Query) -> ServedIndex:
        """Raises RequestError for a name that there is not."""
        if not query.index:
            return next(iter(self.served.values()))
        if query.index not in self.served:
            known = ", ".join(self.served)
            raise RequestError(
                404, "no_such_index", f"There is no index {query.index[:80]!r} here; there are: {known}."
            )
        return self.served[query.index]

    def _atlas(self, query: requests.Query) -> Atlas:
        return self.index_of(query).atlas

    def _passages(self, query: requests.PageQuery, kind: type[Any], id: str) -> Passages:
        atlas = self._atlas(query)
        return atlas.passages(atlas.record(kind, id).chunk_ids, query.offset, query.limit)

    # The FAQ cache

    def entries(self, query: requests.FaqQuery) -> FaqItems:
        """Prepared answers; what waits comes in the order in which it is worth a look."""
        faq = self.index_of(query).faq
        if faq is None:
            return FaqItems(exists=False, counts={}, **page_of([], query))
        page = page_of(waiting(faq) if query.status == "waiting" else faq.entries(query.status), query)
        items = [FaqItem.of_record(entry, answer=entry.answer[:BEGINNING]) for entry in page["items"]]
        return FaqItems(**{"exists": True, "counts": faq.counts(), **page, "items": items})

    def entry(self, query: requests.Query, number: int) -> Json:
        """An entry with what its answer can be judged by, and its versions."""
        return entry_json(self.index_of(query), number)

    def review(self, body: requests.ReviewRequest, number: int) -> Json:
        """The entry as it is then. Raises RequestError if the server may not edit, where somebody changed the entry
        meanwhile, or if an answer lacks or rests on a document that is not there."""
        served = self.index_of(body)
        if not served.edit:
            raise RequestError(403, "read_only", "This server is read-only; start it with --edit to review.")

        entry_json(served, number)  # it is there

        faq: Any = served.faq
        here: Any = {"by": REVIEWER, "version": body.version}
        try:
            if body.action == "reject":
                faq.remove(number, **here)
                return {"number": number, "status": "removed"}
            if body.action == "edit":
                answer(served.index, faq, number, body.answer or "", document_ids=body.document_ids, **here)
            else:
                approve(served.index, faq, number, **here)
        except FaqConflictError as error:
            raise RequestError(409, "changed", str(error)) from None
        except UnknownRecordError:
            raise RequestError(422, "no_such_document", "The index has no document of one of these ids.") from None

        return entry_json(served, number)

    # Asking

    async def ask(self, request: Request, body: requests.AskRequest) -> Answer | Response:
        """Raises RequestError before anything is answered; later, a stream says what went wrong as an event."""
        history = tuple(Turn(turn.question, turn.answer) for turn in body.history)
        call = await self.call(
            request, self.index_of(body), body.program, body.question, body.retriever, body.options,
            history=history, no_refuse=body.no_refuse,
        )  # fmt: skip
        if body.stream:
            return streaming(sent(stream(call)))
        answer = await while_connected(request, ask(call))
        return Response(status_code=GONE) if answer is None else answer

    async def call(
        self,
        request: Request,
        served: ServedIndex,
        program: str | None,
        question: str,
        retriever: str | None = None,
        options: Any = None,
        *,
        history: Sequence[Turn] = (),
        no_refuse: bool = False,
    ) -> ProgramCall:
        """A question to a program, the default one if none is named, ready to be answered.

        Raises RequestError for a program or an option that there is not, and if too many wait already.
        """
        if not question.strip():
            raise RequestError(422, "invalid_request", "The question is empty.")
        choice, answering = await run_in_threadpool(served.program, program or DEFAULT_PROGRAM, retriever, options)
        record = record_of(request.scope)
        record.index, record.program = served.name, choice.spec.name
        self.slots.require_free()
        anyway = no_refuse or self.no_refuse
        refuse = served.space.refuses and not anyway
        asked = AskedRequest(question.strip(), answering, history, refuse=refuse, anyway=anyway)
        may_be_prepared = not (program or retriever or options or history)
        return ProgramCall(served, choice, asked, self.slots, record, may_be_prepared, self.question_log)

    def health(self, query: requests.Query) -> Health:
        return Health(status="ok")


def page_of(items: Sequence[Any], query: requests.PageQuery) -> Json:
    """The part of a list that the query asks for, with how many there are in all."""
    return {
        "total": len(items),
        "offset": query.offset,
        "items": list(items[query.offset : query.offset + query.limit]),
    }


def status_of(served: ServedIndex, names: Sequence[str]) -> Status:
    """What the index is, what it holds, and what can be asked; no setting, address or folder."""
    manifest, faq = served.index.manifest, served.faq

    def default(value: Any) -> Any:
        return value if isinstance(value, str | int | float | bool) else None

    return Status(
        index=served.name,
        indexes=list(names),
        version=version("kraq-dspy"),
        complete=manifest.complete,
        updated_at=manifest.updated_at,
        encoder=shown_model(manifest.encoder_name),
        models=sorted({shown_model(name) for name in manifest.models.values()}),
        counts={name: count for name, count in served.index.counts().items() if name != "failures"},
        levels=served.atlas.levels,
        edit=served.edit,
        faq=faq.counts() if faq else None,
        default_program=DEFAULT_PROGRAM,
        default_retriever=served.space.default_retriever,
        programs=[
            ProgramView.of_record(
                spec,
                takes_retriever=spec.takes != "nothing",
                prepared_by=list(required_commands(spec.prepared)),
                options={
                    option.name: ProgramOption(default=default(option.default), help=option.help)
                    for option in options_of(spec.options).values()
                },
            )
            for spec in iter(PROGRAMS)
        ],
        retrievers=list(map(RetrieverView.of_record, iter(RETRIEVERS))),
        can_ask=True,
    )


def entry_json(served: ServedIndex, number: int) -> Json:
    """Raises RequestError for an entry, or an FAQ cache, that there is not."""
    faq: FaqCache | None = served.faq
    if faq is None:
        raise RequestError(404, "no_faq", "This index has no FAQ cache of prepared answers yet.")
    try:
        entry = faq.get(number)
    except (FaqError, OverflowError):  # a number too large for the table is not there
        raise not_found("entry", str(number)) from None

    titles = served.atlas.titles
    return {
        **asdict(entry),
        "evidence": [asdict(each) for each in evidence_for(served.index, entry, 5)],
        "sources": [
            {"document_id": each, "title": titles.get(each, each), "state": state}
            for each, state in source_states(served.index, entry).items()
        ],
    }
