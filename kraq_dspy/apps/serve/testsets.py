"""Answers the requests of two pages: what a team's own questions never touch, and the review of a test set.

Both are for whoever owns the index, in `kraq serve --open`: a served index has them only if it was given a desk.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from kraq_dspy.apps.serve import requests
from kraq_dspy.apps.serve.api import Api, page_of
from kraq_dspy.apps.serve.atlas import Json
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.apps.serve.testset_desk import TestsetDesk
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.coverage import Coverage, CoveredCommunity, coverage_of
from kraq_dspy.records import Document, TestsetRow
from kraq_dspy.testset import kinds
from kraq_dspy.testset.making import TestsetPlan, make_testset
from kraq_dspy.testset.review import DECIDED, Correction, ReviewedTestset, version_of

OFFERED = 3
"""Rows that are made at once about a community that no question touches."""


class TestsetApi:
    """What the two pages ask, of the indexes of the API and in its places for questions."""

    __test__ = False

    def __init__(self, api: Api) -> None:
        self.api = api

    def desk(self, query: requests.Query) -> Json:
        """Whether there are questions whose coverage can be shown, and how many rows of a test set wait."""
        return dict(desk_json(self.api.index_of(query)))

    def coverage(self, query: requests.CoverageQuery) -> Json:
        """How many of a team's own questions touch each community, those of the most passages first; or the questions
        that the documents do not answer, or those that are near no passage."""
        served = self.api.index_of(query)
        desk = _desk(served)
        if not desk.questions:
            raise RequestError(404, "no_questions", "No questions were given: kraq serve DIR --open --questions FILE")

        coverage = _coverage(served, desk)
        if query.refused or query.far:
            listed = set((coverage.refused or ()) if query.refused else coverage.far)
            page = page_of([each for each in desk.questions if each.id in listed], query)
            items = [{"id": each.id, "question": each.question} for each in page["items"]]
        else:
            page = page_of(coverage.untouched if query.untouched else coverage.communities, query)
            items = [_community_json(served, community) for community in page["items"]]

        return {
            "questions": coverage.questions,
            "refused": None if coverage.refused is None else len(coverage.refused),
            "far": len(coverage.far),
            "share": coverage.share,
            "communities": len(coverage.communities),
            "untouched": len(coverage.untouched),
            "may_add": served.edit and desk.testset is not None,
            **page,
            "items": items,
        }

    async def offer(self, request: Request, body: requests.OfferRequest) -> Json:
        """Make test rows about a community that no question touches. They are made as `kraq testset make` makes them,
        which takes seconds, and more where a language model asks."""
        served = self.api.index_of(body)
        desk = _desk(served)
        coverage = await asyncio.to_thread(_coverage, served, desk)
        by_id = {community.community_id: community for community in coverage.communities}
        chosen = by_id.get(body.community_id)
        if chosen is None:
            raise RequestError(404, "not_found", "The index has no such community, or it was removed meanwhile.")

        plan = TestsetPlan(OFFERED, {kinds.FACT: 1}, only=frozenset(chosen.chunk_ids))
        async with self.api.slots.slot():
            made = await asyncio.to_thread(lambda: make_testset(served.space, plan=plan))

        desk.offered.update((row.id, row) for row in made)
        return {"items": [_row_json(served, row) for row in made]}

    def rows(self, query: requests.TestsetQuery) -> Json:
        """The rows of the test set, as they stand in its file now."""
        testset = _testset(self.api.index_of(query))
        rows: dict[str, list[TestsetRow]] = {"waiting": [], **{status: [] for status in DECIDED}}
        for row in testset.rows():
            rows[row.status if row.status in DECIDED else "waiting"].append(row)
        counts = {status: len(listed) for status, listed in rows.items()}
        page = page_of(rows[query.status], query)
        items = [{name: getattr(row, name) for name in ("id", "question", "type", "status")} for row in page["items"]]
        return {"file": testset.path.name, "counts": counts, **page, "items": items}

    def row(self, query: requests.Query, id: str) -> Json:
        """A row with the text of its gold passages."""
        served = self.api.index_of(query)
        row = next((each for each in _testset(served).rows() if each.id == id), None)
        if row is None:
            raise RequestError(404, "not_found", "The test set has no such row, or it was removed meanwhile.")
        return _row_json(served, row)

    def decide(self, body: requests.RowRequest, id: str) -> Json:
        """The row as it is then. Raises RequestError if the server may not edit, or if somebody changed it."""
        served = self.api.index_of(body)
        testset = _editable(served)
        if body.action == "add":
            offered = _desk(served).offered.get(id)
            if offered is None:
                raise RequestError(
                    404, "not_found", "This row was not offered since the server started. Load the page again."
                )
            return _row_json(served, testset.add(offered))

        correction = Correction(body.question, tuple(body.answers)) if body.action == "edit" else None
        try:
            return _row_json(served, testset.decide(id, body.action, body.version, correction))
        except EvaluationError as error:
            raise RequestError(409, "changed", str(error)) from error


def desk_json(served: ServedIndex) -> Mapping[str, Any]:
    """What a page learns of the desk: whether there are questions to cover, how many rows of a test set wait (None
    without one), and whether questions are labeled here."""
    desk = served.desk
    if desk is None:
        return {"coverage": False, "testset": None, "label": False}
    waiting = None
    if desk.testset is not None:
        waiting = sum(row.status not in DECIDED for row in desk.testset.rows())
    testset = None if waiting is None else {"waiting": waiting}
    return {"coverage": bool(desk.questions), "testset": testset, "label": desk.labels is not None}


def _desk(served: ServedIndex) -> TestsetDesk:
    if served.desk is None:
        raise RequestError(
            404,
            "no_desk",
            "This server has neither questions nor a test set: kraq serve DIR --open --questions FILE --testset FILE",
        )
    return served.desk


def _testset(served: ServedIndex) -> ReviewedTestset:
    testset = _desk(served).testset
    if testset is None:
        raise RequestError(404, "no_testset", "No test set was given: kraq serve DIR --open --testset FILE")
    return testset


def _editable(served: ServedIndex) -> ReviewedTestset:
    testset = _testset(served)
    if not served.edit:
        raise RequestError(403, "read_only", "This server is read-only; start it with --edit to review.")
    return testset


def _coverage(served: ServedIndex, desk: TestsetDesk) -> Coverage:
    coverage: Coverage = served.kept("coverage", lambda space: coverage_of(space, desk.questions))
    return coverage


def _community_json(served: ServedIndex, community: CoveredCommunity) -> Json:
    known = served.atlas.communities.get(community.community_id)
    return {
        "id": community.community_id,
        "title": community.title,
        "question": known.question if known else "",
        "document_id": "" if known else community.community_id.removeprefix("document "),
        "n_passages": len(community.chunk_ids),
        "questions": community.questions,
    }


def _row_json(served: ServedIndex, row: TestsetRow) -> Json:
    """The row, its version, and the text of its passages where their documents still have it."""
    known = served.index.known(Document, {passage.document_id for passage in row.passages})
    documents = {document.id: document for document in served.index.get(Document, sorted(known))}

    passages = []
    for passage in row.passages:
        document = documents.get(passage.document_id)
        passages.append(
            {
                "document_id": passage.document_id,
                "chunk_id": passage.chunk_id,
                "title": document.title if document else passage.document_id,
                "text": document.text[passage.start : passage.end] if document else "",
            }
        )

    names = ("id", "question", "type", "status", "answers", "checks", "solved_by", "overlap", "model")
    fields = {name: value for name, value in asdict(row).items() if name in names}
    return {**fields, "version": version_of(row), "passages": passages}
