"""Results of an index are found by the inputs of an item, or by the recipe of its inputs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.programs.kraq.describe import AskQuestion
from kraq_dspy.settings import Settings
from kraq_dspy.steps.direct import Done, Item, LateInputs
from kraq_dspy.steps.kept import StageResults


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    with Index.create(tmp_path / "x.kraq", Settings(), encoder_name="e", encoder_dimension=2) as index:
        yield index.results


def stage(results: ResultStore, model: str = "m") -> StageResults:
    return StageResults(results, "ask", AskQuestion(), model, None)


def keep(results: ResultStore, item: Item) -> None:
    asyncio.run(stage(results).keep(item, Done(item.id, dspy.Prediction(question="Who met Ada?"), "m")))


def made_from(recipe: str, summary: str, made: list[str]) -> Item:
    def make() -> dict[str, Any]:
        made.append(summary)
        return {"summary": summary}

    return Item("c1", LateInputs(make), recipe)


def question_of(done: Done | None) -> str | None:
    return None if done is None else done.prediction.question


def test_a_result_is_found_by_its_recipe_without_making_the_inputs(results: ResultStore) -> None:
    made: list[str] = []
    keep(results, made_from("r1", "Ada met Charles.", made))
    made.clear()
    assert question_of(stage(results).find(made_from("r1", "Ada met Charles.", made))) == "Who met Ada?"
    assert made == []


def test_a_new_recipe_for_the_same_inputs_costs_no_call_and_is_known_from_then_on(results: ResultStore) -> None:
    made: list[str] = []
    keep(results, made_from("r1", "Ada met Charles.", made))
    assert question_of(stage(results).find(made_from("r2", "Ada met Charles.", made))) == "Who met Ada?"
    made.clear()
    assert question_of(stage(results).find(made_from("r2", "Ada met Charles.", made))) == "Who met Ada?"
    assert made == []


def test_a_result_of_an_older_version_is_found_by_its_inputs(results: ResultStore) -> None:
    keep(results, Item("c1", {"summary": "Ada met Charles."}))
    assert question_of(stage(results).find(made_from("r1", "Ada met Charles.", []))) == "Who met Ada?"


def test_another_recipe_with_other_inputs_or_another_model_finds_nothing(results: ResultStore) -> None:
    keep(results, made_from("r1", "Ada met Charles.", []))
    assert stage(results).find(made_from("r2", "Ada met Mary.", [])) is None
    assert stage(results, "another").find(made_from("r1", "Ada met Charles.", [])) is None


def test_inputs_are_made_once_and_when_they_are_read() -> None:
    made: list[str] = []
    inputs = made_from("", "Ada", made).inputs
    assert made == []
    assert (dict(inputs), len(inputs), inputs["summary"]) == ({"summary": "Ada"}, 1, "Ada")
    assert made == ["Ada"]


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
