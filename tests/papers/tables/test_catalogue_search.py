"""Joins the rows of two systems into a third one's."""

from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.papers.tables.catalogue_search import joined
from kraq_dspy.papers.tables.table import System


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
