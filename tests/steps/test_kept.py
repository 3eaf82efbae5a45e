"""Tests that outcomes are kept one by one, and when a run gives up."""

import asyncio
import errno

import dspy
import pytest

from kraq_dspy.errors import BudgetExceededError, IndexStateError, ModelError
from kraq_dspy.extend import LanguageModels
from kraq_dspy.ports import SilentProgress
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.failures import GIVE_UP_AFTER
from kraq_dspy.steps.kept import ProgramRunner, reason_of


class Shelf:
    """A keeper in memory."""

    def __init__(self, *kept: str) -> None:
        self.outcomes = {word: Done(word, dspy.Prediction(loud=word.upper()), "m") for word in kept}
        self.failed: dict[str, str] = {}

    def find(self, item: Item) -> Done | None:
        return self.outcomes.get(item.id)

    async def keep(self, item: Item, outcome: Done) -> None:
        self.outcomes[item.id] = outcome

    def fail(self, item_id: str, reason: str) -> None:
        self.failed[item_id] = reason


class Shouting(dspy.Module):
    """A word in capitals; "bad" ones fail; "spent", "unopened" and "too large" end the run."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def aforward(self, word: str) -> dspy.Prediction:
        self.asked.append(word)
        if word.startswith("bad"):
            raise ValueError("no")
        if word == "unopened":
            raise ValueError("no answer") from OSError(errno.EMFILE, "Too many open files", "x.py")
        if word == "too large":
            raise ValueError("no answer") from OSError(errno.EFBIG, "File too large")
        if word == "spent":
            raise BudgetExceededError("spent")
        return dspy.Prediction(loud=word.upper())


def items(*names: str, document: str = "") -> list[Item]:
    return [Item(name, {"word": name}, document=document) for name in names]


def mapped(shelf: Shelf, names: list[Item]) -> tuple[list[str], list[str]]:
    """What came, and what was asked."""
    program = Shouting()

    async def run() -> list[str]:
        runner = ProgramRunner(LanguageModels(), SilentProgress(), concurrency=1)
        asked = runner.ask("shout", None, program, names, shelf, plural="words")
        return [done.prediction.loud async for done in asked]

    return asyncio.run(run()), program.asked


def test_what_was_kept_is_found_and_the_rest_is_asked_and_kept() -> None:
    shelf = Shelf("a")
    came, asked = mapped(shelf, items("a", "b"))
    assert (sorted(came), asked, list(shelf.outcomes)) == (["A", "B"], ["b"], ["a", "b"])


def test_a_failure_costs_its_item_and_its_reason_is_kept() -> None:
    shelf = Shelf()
    assert mapped(shelf, items("a", "bad", "b"))[0] == ["A", "B"]
    assert (list(shelf.outcomes), shelf.failed) == (["a", "b"], {"bad": "ValueError: no"})


def test_what_must_end_the_run_does_and_what_was_kept_stays() -> None:
    shelf = Shelf()
    with pytest.raises(BudgetExceededError):
        mapped(shelf, items("a", "spent", "b"))
    assert (list(shelf.outcomes), shelf.failed) == (["a"], {})


def test_a_process_that_may_open_no_more_files_ends_the_run_and_no_model_is_blamed() -> None:
    shelf = Shelf()
    with pytest.raises(IndexStateError, match=r"No more files can be opened.*ulimit -n"):
        mapped(shelf, items("a", "unopened", "b"))
    assert (list(shelf.outcomes), shelf.failed) == (["a"], {})


def test_a_file_that_may_not_grow_ends_the_run_and_is_no_fault_of_the_model() -> None:
    shelf = Shelf()
    with pytest.raises(OSError, match="File too large"):
        mapped(shelf, items("a", "too large", "b"))
    assert (list(shelf.outcomes), shelf.failed) == (["a"], {})


def test_nothing_but_failures_ends_the_run_early() -> None:
    shelf = Shelf()
    with pytest.raises(ModelError, match=r"The first 25 words failed; the last reason: ValueError: no"):
        mapped(shelf, items(*(f"bad{number}" for number in range(100))))
    assert len(shelf.failed) == GIVE_UP_AFTER


def test_failures_of_one_document_are_no_sign_of_a_model_that_fails() -> None:
    shelf = Shelf()
    of_one = items(*(f"bad{number}" for number in range(60)), document="a")
    assert mapped(shelf, [*of_one, *items("good")])[0] == ["GOOD"]
    assert len(shelf.failed) == 60


def test_a_long_document_of_nothing_but_failures_ends_the_run_all_the_same() -> None:
    with pytest.raises(ModelError, match=r"The first 200 words failed"):
        mapped(Shelf(), items(*(f"bad{number}" for number in range(300)), document="a"))


def test_one_success_before_them_keeps_the_run_going() -> None:
    shelf = Shelf("good")
    assert mapped(shelf, items("good", *(f"bad{number}" for number in range(30))))[0] == ["GOOD"]
    assert len(shelf.failed) == 30


def test_a_short_run_that_only_failed_ends_with_one_message() -> None:
    with pytest.raises(ModelError, match=r"All 2 words failed; .* run the same command again: what was done is kept"):
        mapped(Shelf(), items("bad1", "bad2"))


def test_a_reason_leaves_out_the_advice_that_follows_an_error_of_dspy() -> None:
    error = ModelError("[openai/x] Rate limit reached (429)\n\n  To fix:\n    - Wait a moment and retry")
    assert reason_of(error) == "ModelError: [openai/x] Rate limit reached (429)"
