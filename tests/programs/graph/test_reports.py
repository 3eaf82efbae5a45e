"""Both retrievers of reports keep the retrievers' contract, about communities instead of documents."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers import EntityReportRetriever, ReportRetriever
from tests.programs.graph.conftest import Town

QUESTION = "Which river has a bridge?"

RETRIEVERS: dict[str, Callable[[Any], Retriever]] = {
    "by meaning": lambda town: ReportRetriever(town.reports, town.graph),
    "of a level": lambda town: ReportRetriever(town.reports, town.graph, level=1),
    "by entities": lambda town: EntityReportRetriever(town.entities, town.graph),
}


@pytest.fixture(params=RETRIEVERS)
def retrieve(request: pytest.FixtureRequest, town: Town) -> Retriever:
    return RETRIEVERS[request.param](town)


@pytest.mark.parametrize("k", [1, 2, 50])
def test_at_most_k_reports_none_twice_scores_falling(retrieve: Retriever, k: int) -> None:
    hits = retrieve(QUESTION, k)
    assert min(k, 2) <= len(hits) <= k
    assert len({hit.chunk.id for hit in hits}) == len(hits)
    assert all(earlier.score >= later.score for earlier, later in pairwise(hits))
    assert all(hit.query == QUESTION and hit.why for hit in hits)


def test_exclusion_and_filters_speak_of_communities(retrieve: Retriever) -> None:
    [best, *rest] = retrieve(QUESTION, 9)
    assert retrieve(QUESTION, 9, exclude={best.chunk.id}) == rest
    level = best.chunk.metadata["level"]
    assert {hit.chunk.metadata["level"] for hit in retrieve(QUESTION, 9, filters={"level": level})} == {level}
    assert [hit.chunk.id for hit in retrieve(QUESTION, 9, filters={"document_id": best.chunk.id})] == [best.chunk.id]
    assert retrieve(QUESTION, 9, filters={"level": 7}) == []


def test_the_question_vector_may_come_with_the_question_and_answers_repeat(retrieve: Retriever, town: Town) -> None:
    [vector] = town.embedder.encode_queries([QUESTION])
    expected = retrieve(QUESTION, 5)
    assert retrieve(QUESTION, 5, vector=vector) == expected
    with ThreadPoolExecutor(16) as pool:
        assert all(hits == expected for hits in pool.map(lambda _: retrieve(QUESTION, 5), range(64)))


def test_nonsense_is_refused_and_a_copy_is_the_retriever(retrieve: Retriever) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        retrieve(QUESTION, 0)
    with pytest.raises(ValueError, match="expected some text"):
        retrieve(" ", 3)
    assert copy.deepcopy(retrieve) is retrieve


def test_the_report_nearest_in_meaning_comes_first(town: Town) -> None:
    hits = ReportRetriever(town.reports, town.graph)("castle music", 9)
    assert [hit.chunk.title for hit in hits] == ["Hill", "Water", "Rivers"] or hits[0].chunk.title == "Hill"
    assert hits[0].chunk.text == "Music in the castle.\nThe choir: It sings."


def test_a_level_is_its_communities_and_the_leaves_above(town: Town) -> None:
    def titles(level: int | None) -> set[str]:
        return {hit.chunk.title for hit in ReportRetriever(town.reports, town.graph, level=level)(QUESTION, 9)}

    assert titles(0) == {"Water", "Hill"}
    assert titles(1) == {"Rivers", "Hill"}
    assert titles(None) == {"Water", "Hill", "Rivers"}


def test_entities_lead_to_their_narrowest_reported_community(town: Town) -> None:
    def titles(level: int) -> list[str]:
        retrieve = EntityReportRetriever(town.entities, town.graph, n_entities=3, level=level)
        return [hit.chunk.title for hit in retrieve("river and bridge", 9)]

    assert titles(2) == ["Rivers", "Water"]  # Elbe and Rhine; Blue's own part has no report
    assert titles(0) == ["Water"]


def test_a_finding_that_repeats_its_heading_is_told_once(town: Town) -> None:
    [hit] = ReportRetriever(town.reports, town.graph)("river bridge", 1)
    assert hit.chunk.text == "A river, and a bridge over it.\nA river and more."
