"""The rows of a run as a table of pandas."""

import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

from kraq_dspy.eval.reports.frame import rows_as_frame
from kraq_dspy.eval.rows import ResultRow

ROWS = [
    ResultRow(
        "q1",
        "rag",
        answer="Byron",
        metrics={"right": 1.0, "recall@5": 0.5},
        timings={"total": 0.25},
        hit_ids=("c1", "c2"),
        extra={"question": "Who?", "gold": ["Byron"], "type": "fact", "usage": {"prompt_tokens": 12}},
    ),
    ResultRow("q2", "rag", failure="ModelError: down"),
]


def test_each_row_has_its_question_answer_scores_and_tokens() -> None:
    frame = rows_as_frame(ROWS)
    assert list(frame["question_id"]) == ["q1", "q2"]
    first = frame.iloc[0]
    assert (first["question"], first["answer"], first["right"], first["recall@5"]) == ("Who?", "Byron", 1.0, 0.5)
    assert (first["seconds"], first["prompt_tokens"], first["hit_ids"]) == (0.25, 12, ["c1", "c2"])


def test_a_question_that_failed_has_its_reason_and_no_scores() -> None:
    failed = rows_as_frame(ROWS).iloc[1]
    assert failed["failure"] == "ModelError: down"
    assert failed[["right", "recall@5"]].isna().all()


def test_no_rows_are_an_empty_table() -> None:
    assert len(rows_as_frame([])) == 0
