"""Results of an index are found by the inputs of an item, the program and the model."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.models.lms.envelope import cut_off
from kraq_dspy.programs import AskQuestion
from kraq_dspy.settings import Settings
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import StageResults


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    with Index.create(tmp_path / "x.kraq", Settings(), encoder_name="e", encoder_dimension=2) as index:
        yield index.results


def stage(results: ResultStore, model: str = "m", max_tokens: int | None = None) -> StageResults:
    return StageResults(results, "ask", AskQuestion(), model, max_tokens)


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
    flawed = dspy.Prediction(question="Who met", flaws=("the server withheld its rest",))
    keeper = stage(results)
    asyncio.run(keeper.keep(item, Done(item.id, flawed, "m")))
    assert question_of(keeper.find(item)) == "Who met"  # in this run
    [failure] = results.failures("ask")
    assert failure.reason == "Kept as far as it goes: the server withheld its rest"
    assert stage(results).find(item) is None  # in the next
    keep(results, item)
    assert results.failures("ask") == []
    assert question_of(stage(results).find(item)) == "Who met Ada?"


def test_what_was_cut_off_is_listed_as_failed_and_tried_again_only_at_another_limit_or_with_another_flaw(
    results: ResultStore,
) -> None:
    item = Item("c1", {"summary": "Ada met Charles."})
    cut = dspy.Prediction(question="Who met", flaws=(cut_off(320),))
    asyncio.run(stage(results).keep(item, Done(item.id, cut, "m")))
    assert [failure.item_id for failure in results.failures("ask")] == ["c1"]
    assert question_of(stage(results, max_tokens=320).find(item)) == "Who met"
    assert stage(results, max_tokens=640).find(item) is None
    assert stage(results).find(item) is None
    cut.flaws = (cut_off(320), "the server withheld its rest")
    asyncio.run(stage(results).keep(item, Done(item.id, cut, "m")))
    assert stage(results, max_tokens=320).find(item) is None
    stage(results).fail(item.id, "the server is down")
    assert stage(results, max_tokens=320).find(item) is None
