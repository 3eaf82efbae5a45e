"""Tests that predictions and records show as tables, in notebooks and terminals, safe against documents."""

import io

import dspy
import pytest
from rich.console import Console

from kraq_dspy import show
from kraq_dspy._internal.display import NotebookProgress, as_table, rows
from kraq_dspy.records import Chunk, Community, Hit

CHUNK = Chunk("c", "d", 0, 0, 9, "The Rhine <b>flows</b>.", 5, title="Rivers")
PREDICTION = dspy.Prediction(answer="North Sea", hits=[Hit(CHUNK, 0.5, "q", "dense")] * 7, timings={"wall": 1.25})


def test_a_prediction_shows_its_answer_and_the_first_of_its_evidence() -> None:
    assert dict(rows(PREDICTION)) == {
        "answer": ["North Sea"],
        "hits": ["The Rhine <b>flows</b>. (0.500)"] * 5 + ["and 2 more"],
        "timings": ["wall: 1.250"],
    }


def test_a_list_of_records_shows_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    show([Hit(CHUNK, 0.5, "q", "dense")] * 2)
    assert capsys.readouterr().out.count("The Rhine <b>flows</b>. (0.500)") == 2


def test_a_record_prints_as_one_line() -> None:
    assert repr(Hit(CHUNK, 0.5, "q", "dense")) == "Hit(0.500, 'd', 'The Rhine <b>flows</b>.', 'dense')"


def test_rich_prints_a_record_as_a_table_with_what_is_not_empty() -> None:
    community = Community("id", 1, None, (), ("a", "b"), (), ("c1",))
    file = io.StringIO()
    Console(file=file, width=80).print(as_table(community))
    assert "Community" in file.getvalue()
    assert "chunk_ids" in file.getvalue()
    assert "relationship_ids" not in file.getvalue()
    assert dict(rows(community))["entity_ids"] == ["a", "b"]


def test_show_prints_where_there_is_no_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    show(PREDICTION)
    assert "North Sea" in capsys.readouterr().out
    assert as_table(PREDICTION).row_count == 3


def test_what_has_no_parts_is_named() -> None:
    with pytest.raises(TypeError, match=r"'text' \(str\) is neither a prediction nor a record"):
        show("text")


def test_progress_in_a_notebook_has_a_bar_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    progress = NotebookProgress()
    progress.start("extract", 3)
    progress.advance("extract", 3)
    progress.advance("embed", 1)
    progress.finish("extract")
    assert "extract: 100%" in capsys.readouterr().err
