"""Tests that the rows of a run are on the disk as they come, and that a run is continued only as it was begun."""

import dataclasses
from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, read_rows, read_run

HEADER = RunHeader(
    name="combined",
    dataset="hotpot_qa",
    settings={"n": 2, "alpha": 0.5},
    seeds={"sample": 0},
    models={"answerer": "embedded", "encoder": "minilm"},
    index_fingerprint="abc",
)
ROWS = [
    ResultRow("q1", "combined", "Málaga", {"exact_match": 1.0}, timings={"draft": [0.1, 0.2]}, hit_ids=("c1", "c2")),
    ResultRow("q2", "combined", "", failure="the server timed out"),
    ResultRow("q3", "combined", "Rome \ud800", {"exact_match": 0.0}, failed_metrics={"judge": "the reply was 'maybe'"}),
]


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path / "run", HEADER)
    for row in ROWS:
        writer.write(row)
    assert read_run(tmp_path / "run") == (HEADER, ROWS)


def test_a_run_that_was_cut_in_the_middle_of_a_line_goes_on(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, HEADER)
    writer.write(ROWS[0])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"question_id": "q2", "ans')
    writer = RowWriter(tmp_path, dataclasses.replace(HEADER, created_at="later"))
    assert writer.done == {("combined", "q1")}
    writer.write(ROWS[1])
    assert read_rows(tmp_path / "rows.jsonl") == ROWS[:2]


def test_a_run_with_other_settings_is_not_continued(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, HEADER)
    writer.write(ROWS[0])
    with pytest.raises(EvaluationError, match="was made otherwise: "):
        RowWriter(tmp_path, dataclasses.replace(HEADER, settings={}, models={}))
    assert read_run(tmp_path) == (HEADER, ROWS[:1])


@pytest.mark.parametrize("left", ["", '{"question_id": "q1", "sys'])
def test_a_run_that_was_ended_before_its_first_row_begins_anew(tmp_path: Path, left: str) -> None:
    RowWriter(tmp_path, HEADER)
    (tmp_path / "rows.jsonl").write_text(left)
    other = dataclasses.replace(HEADER, settings={}, models={})
    writer = RowWriter(tmp_path, other)
    writer.write(ROWS[0])
    assert read_run(tmp_path) == (other, ROWS[:1])


def test_a_question_is_answered_once_by_each_system(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, HEADER)
    writer.write(ROWS[0])
    writer.write(dataclasses.replace(ROWS[0], system="traditional"))
    with pytest.raises(EvaluationError, match="'q1' of 'combined' is already"):
        writer.write(ROWS[0])


def test_a_row_refuses_nan_and_a_failure_with_scores() -> None:
    with pytest.raises(EvaluationError, match="Question 'q': the metric 'f1' is nan"):
        ResultRow("q", metrics={"f1": float("nan")})
    with pytest.raises(EvaluationError, match="has both a failure and the metrics"):
        ResultRow("q", metrics={"f1": 1.0}, failure="no answer")


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question_id": "q1"}\n{"no": "row"}\n')
    with pytest.raises(EvaluationError, match=r"rows.jsonl, line 2 is not a row"):
        read_rows(path)
    with pytest.raises(EvaluationError, match="holds no run"):
        read_run(tmp_path)
