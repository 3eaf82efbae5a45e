"""Results of an index are found by the inputs of an item, the program and the model."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.programs.kraq.describe import AskQuestion
from kraq_dspy.settings import Settings
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import StageResults


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    with Index.create(tmp_path / "x.kraq", Settings(), encoder_name="e", encoder_dimension=2) as index:
        yield index.results


def stage(results: ResultStore, model: str = "m") -> StageResults:
    return StageResults(results, "ask", AskQuestion(), model)


def keep(results: ResultStore, item: Item) -> None:
    asyncio.run(stage(results).keep(item, Done(item.id, dspy.Prediction(question="Who met Ada?"), "m")))


def question_of(done: Done | None) -> str | None:
    return None if done is None else done.prediction.question


def test_a_result_is_found_by_the_same_inputs_and_model_alone(results: ResultStore) -> None:
    item = Item("c1", {"summary": "Ada met Charles."})
    keep(results, item)
    assert question_of(stage(results).find(item)) == "Who met Ada?"
    assert stage(results).find(Item("c1", {"summary": "Ada met Mary."})) is None
    assert stage(results, "another").find(item) is None


def test_what_has_a_flaw_is_kept_listed_as_failed_and_tried_again(results: ResultStore) -> None:
    item = Item("c1", {"summary": "Ada met Charles."})
    flawed = dspy.Prediction(question="Who met", flaws=("the reply was cut off",))
    keeper = stage(results)
    asyncio.run(keeper.keep(item, Done(item.id, flawed, "m")))
    assert question_of(keeper.find(item)) == "Who met"  # in this run
    [failure] = results.failures("ask")
    assert failure.reason == "Kept as far as it goes: the reply was cut off"
    assert stage(results).find(item) is None  # in the next
    keep(results, item)
    assert results.failures("ask") == []
    assert question_of(stage(results).find(item)) == "Who met Ada?"
