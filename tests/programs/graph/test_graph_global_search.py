"""Tests that points of all reports are brought together, the most important first, within the budget."""

import json
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs import GraphGlobalSearch
from kraq_dspy.programs.graph.graph_global_search import UNKNOWN
from kraq_dspy.records import RatedPoint
from kraq_dspy.retrievers import ReportRetriever
from tests.programs.graph.conftest import Town

QUESTION = "Which river has a bridge?"


def points(*rated: tuple[str, int]) -> dict[str, str]:
    return {"points": json.dumps([{"point": text, "importance": importance} for text, importance in rated])}


def model(**points_of: dict[str, str]) -> DummyLM:
    """Points by a word of the report; the reduce step is known by what it asks for."""
    return DummyLM({"`[[ ## answer ## ]]`": {"answer": "the Elbe"}, **points_of})


def search(town: Town, **settings: Any) -> GraphGlobalSearch:
    return GraphGlobalSearch(ReportRetriever(town.reports, town.graph, level=0), **settings)


def test_points_of_all_reports_are_brought_together_most_important_first(town: Town) -> None:
    lm = model(over=points(("It has a bridge.", 60), ("Useless.", 0), ("Too much.", 400)), sings=points(("Music.", 70)))
    with dspy.context(lm=lm):
        prediction = search(town, tokens=20)(question=QUESTION)
    assert prediction.answer == "the Elbe"
    assert prediction.n_batches == 2
    assert prediction.points == [
        RatedPoint("Too much.", 100), RatedPoint("Music.", 70), RatedPoint("It has a bridge.", 60)
    ]  # fmt: skip
    prompt = lm.history[-1]["messages"][-1]["content"]
    assert prompt.index("100: Too much.") < prompt.index("70: Music.") < prompt.index("60: It has a bridge.")
    assert {hit.chunk.title for hit in prediction.hits} == {"Water", "Hill"}


def test_reports_that_fit_together_are_one_batch(town: Town) -> None:
    with dspy.context(lm=(lm := model(over=points(("Both.", 50))))):
        assert search(town)(question=QUESTION).n_batches == 1
    assert len(lm.history) == 2


def test_the_reduce_step_sees_as_many_points_as_fit(town: Town) -> None:
    many = points(*((f"Point number {number} of many.", 100 - number) for number in range(40)))
    with dspy.context(lm=(lm := model(over=many, sings=many))):
        prediction = search(town, tokens=30)(question=QUESTION)
    prompt = lm.history[-1]["messages"][-1]["content"]
    assert len(prediction.points) == 40
    assert "Point number 0" in prompt
    assert "Point number 10 " not in prompt


def test_without_points_nothing_more_is_asked(town: Town) -> None:
    with dspy.context(lm=(lm := model(over=points(), sings=points()))):
        prediction = search(town)(question=QUESTION)
    assert (prediction.answer, prediction.points) == (UNKNOWN, [])
    assert len(lm.history) == 1


def test_bad_settings_are_refused(town: Town) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        search(town, k=0)
