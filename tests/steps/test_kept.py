"""Outcomes that are kept one by one, and runs that give up."""

import asyncio

import pytest

from kraq_dspy.errors import BudgetExceededError, ModelError
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import GIVE_UP_AFTER, StageFailures, map_kept, reason_of


class Shelf:
    """A keeper in memory."""

    def __init__(self, **outcomes: str) -> None:
        self.outcomes = outcomes
        self.failed: dict[str, str] = {}

    def find(self, item: Item) -> str | None:
        return self.outcomes.get(item.id)

    async def keep(self, item: Item, outcome: str) -> None:
        self.outcomes[item.id] = outcome

    def fail(self, item_id: str, reason: str) -> None:
        self.failed[item_id] = reason


def items(*names: str) -> list[Item]:
    return [Item(name, {}) for name in names]


def mapped(shelf: Shelf, names: list[Item], worked_on: list[str]) -> list[str | None]:
    """Each item in capitals; "bad" ones fail, "spent" ends the run."""

    async def work(item: Item) -> str:
        worked_on.append(item.id)
        if item.id.startswith("bad"):
            raise ValueError("no")
        if item.id == "spent":
            raise BudgetExceededError("spent")
        return item.id.upper()

    async def run() -> list[str | None]:
        failures = StageFailures("shout", "words", model="m")
        return [outcome async for outcome in map_kept(work, names, shelf, failures, concurrency=1)]

    return asyncio.run(run())


def test_what_was_kept_is_found_and_the_rest_is_asked_and_kept() -> None:
    shelf = Shelf(a="A")
    worked_on: list[str] = []
    assert sorted(map(str, mapped(shelf, items("a", "b"), worked_on))) == ["A", "B"]
    assert (worked_on, shelf.outcomes) == (["b"], {"a": "A", "b": "B"})


def test_a_failure_costs_its_item_and_its_reason_is_kept() -> None:
    shelf = Shelf()
    assert mapped(shelf, items("a", "bad", "b"), []) == ["A", None, "B"]
    assert (shelf.outcomes, shelf.failed) == ({"a": "A", "b": "B"}, {"bad": "ValueError: no"})


def test_what_must_end_the_run_does_and_what_was_kept_stays() -> None:
    shelf = Shelf()
    with pytest.raises(BudgetExceededError):
        mapped(shelf, items("a", "spent", "b"), [])
    assert shelf.outcomes == {"a": "A"}
    assert not shelf.failed


def test_nothing_but_failures_ends_the_run_early() -> None:
    worked_on: list[str] = []
    with pytest.raises(
        ModelError, match=r"The first 25 words failed with the model 'm'; the last reason: ValueError: no"
    ):
        mapped(Shelf(), items(*(f"bad{number}" for number in range(100))), worked_on)
    assert len(worked_on) == GIVE_UP_AFTER


def test_failures_of_one_document_are_no_sign_of_a_model_that_fails() -> None:
    shelf = Shelf()
    of_one = [Item(f"bad{number}", {}, document="a") for number in range(60)]
    assert mapped(shelf, [*of_one, *items("good")], [])[-1] == "GOOD"
    assert len(shelf.failed) == 60


def test_a_long_document_of_nothing_but_failures_ends_the_run_all_the_same() -> None:
    with pytest.raises(ModelError, match=r"The first 200 words failed"):
        mapped(Shelf(), [Item(f"bad{number}", {}, document="a") for number in range(300)], [])


def test_one_success_before_them_keeps_the_run_going() -> None:
    shelf = Shelf(good="GOOD")
    names = ["good", *(f"bad{number}" for number in range(30))]
    assert len(mapped(shelf, items(*names), [])) == 31
    assert len(shelf.failed) == 30


def test_a_short_run_that_only_failed_ends_with_one_message() -> None:
    with pytest.raises(ModelError, match=r"All 2 words failed .* run the same command again: what was done is kept"):
        mapped(Shelf(), items("bad1", "bad2"), [])


def test_a_reason_leaves_out_the_advice_that_follows_an_error_of_dspy() -> None:
    error = ModelError("[openai/x] Rate limit reached (429)\n\n  To fix:\n    - Wait a moment and retry")
    assert reason_of(error) == "ModelError: [openai/x] Rate limit reached (429)"
