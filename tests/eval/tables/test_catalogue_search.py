"""Joins the rows of two systems into a third one's, and words questions otherwise."""

from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import Row
from kraq_dspy.eval.tables.catalogue_search import joined
from kraq_dspy.eval.tables.phrasings import SHORT, Phrasings, question_of
from kraq_dspy.eval.tables.table import System
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import SilentProgress


def row(system: str, question: str, right: float, seconds: float, calls: int) -> Row:
    usage = {"calls": calls, "memory_mb": 100.0 * calls}
    return Row(question, system, metrics={"right": right}, timings={"total": seconds}, extra={"usage": usage})


def test_where_the_first_is_wrong_the_second_counts_with_the_time_and_the_calls_of_both() -> None:
    rows = [row("rag", "q1#0", 1, 2, 1), row("rag", "q2#0", 0, 2, 1), row("search", "q2#1", 1, 0.5, 3)]
    both = list(joined(System("both", "first of two", {"first": "rag", "then": "search"}), rows))
    assert [(each.system, each.question_id, each.metrics["right"]) for each in both] == [
        ("both", "q1#0", 1), ("both", "q2#0", 1),
    ]  # fmt: skip
    assert [each.timings["total"] for each in both] == [2, 2.5]
    assert [each.extra["usage"] for each in both] == [
        {"calls": 1, "memory_mb": 100.0}, {"calls": 4, "memory_mb": 300.0},
    ]  # fmt: skip


@pytest.fixture
def phrasings(tmp_path: Path) -> Phrasings:
    lm = LanguageModels()["rewriter"]
    return Phrasings(tmp_path / "phrasings.jsonl", lm, concurrency=2, progress=SilentProgress())


ASKED = Example("q1", "In which city was the painter Frida Kahlo born?", ("Coyoacán",))


def test_wordings_are_questions_of_their_own_that_know_the_first_one(phrasings: Phrasings) -> None:
    rephrased = phrasings.of([ASKED], "free", 3)
    assert [each.id for each in rephrased] == ["q1#1", "q1#2", "q1#3"]
    assert {question_of(each.id) for each in rephrased} == {"q1"}
    assert len({each.question for each in rephrased} | {ASKED.question}) == 4
    assert {each.metadata["original"] for each in rephrased} == {ASKED.question}
    assert phrasings.of([ASKED], "original", 3)[0].question == ASKED.question


def test_short_wordings_have_at_most_thirty_characters(phrasings: Phrasings) -> None:
    rephrased = phrasings.of([ASKED], "short", 3)
    assert rephrased
    assert all(len(each.question) <= SHORT for each in rephrased)


def test_what_one_run_rephrased_the_next_finds(phrasings: Phrasings) -> None:
    first = phrasings.of([ASKED], "free", 2)
    again = Phrasings(phrasings.file, phrasings.lm, concurrency=1, progress=SilentProgress())

    def refuse(*_: Any, **__: Any) -> dspy.Prediction:
        raise AssertionError("asked again")

    again._rephrase = refuse  # type: ignore[assignment]
    assert again.of([ASKED], "free", 2) == first


def test_an_unknown_kind_of_wording_is_refused(phrasings: Phrasings) -> None:
    with pytest.raises(ConfigError, match="there are: original, free, short"):
        phrasings.of([ASKED], "rhymed", 1)
