"""Joins the rows of two systems into a third one's."""

from dataclasses import replace

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.papers.tables.faq_search import joined
from kraq_dspy.papers.tables.table import System
from tests.papers.tables.conftest import Scripted, Toy


def row(system: str, question: str, right: float, seconds: float, calls: int) -> ResultRow:
    usage = {"calls": calls, "memory_mb": 100.0 * calls}
    return ResultRow(question, system, metrics={"right": right}, timings={"total": seconds}, extra={"usage": usage})


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


def test_a_question_on_which_one_of_both_failed_is_no_row_of_fewer() -> None:
    rows = [
        replace(row("rag", "q1#0", 1, 2, 1), metrics={}, failure="TimeoutError"), row("rag", "q2#0", 0, 2, 1),
        row("rag", "q3#0", 1, 2, 1), row("rag", "q4#0", 0, 2, 1),
        replace(row("search", "q2#1", 1, 0.5, 3), metrics={}, failure="ModelError"),
    ]  # fmt: skip
    both = list(joined(System("both", "first of two", {"first": "rag", "then": "search"}), rows))
    assert [(each.question_id, each.failure, each.metrics.get("right")) for each in both] == [
        ("q1#0", "TimeoutError", None), ("q2#0", "ModelError", None), ("q3#0", None, 1), ("q4#0", None, 0),
    ]  # fmt: skip


def test_a_system_whose_questions_nobody_could_word_is_refused_before_it_costs(toy: Toy, scripted: Scripted) -> None:
    engine, models = scripted(lambda prompt: '[[ ## rephrasings ## ]]\n["' + "a wording that is too long " * 3 + '"]')
    table = toy.table("qa_matching")
    short = replace(table, systems=tuple(each for each in table.systems if each.name in ("original", "short")))
    with pytest.raises(EvaluationError, match=r"'short' has nothing to ask.*at most 30 characters.*roles.rewriter"):
        toy.run(short, limit=1, models=models)
    assert all("rephrasings" in prompt for prompt in engine.prompts)
