"""Rows of a test set are approved, edited and rejected in their file, and the next run keeps what was decided."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraq_dspy import Workspace
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Testset, evaluate, update_testset
from kraq_dspy.records import TestsetRow
from kraq_dspy.testset.review import Correction, ReviewedTestset, version_of, with_decisions
from tests.orchids import ANSWERED, index_of_orchids
from tests.whole_program import app

ROWS = (
    TestsetRow("t1", ANSWERED[0], "fact", ("John Lindley",), supporting_ids=("cattleya",)),
    TestsetRow("t2", ANSWERED[1], "fact", ("once a week",), supporting_ids=("care",)),
    TestsetRow("t3", ANSWERED[2], "fact", ("Phalaenopsis amabilis",), supporting_ids=("phalaenopsis",)),
)


@pytest.fixture
def review(tmp_path: Path) -> ReviewedTestset:
    return ReviewedTestset(Testset(ROWS).save(tmp_path / "test.jsonl"))


def test_decisions_are_in_the_file_and_others_stay_as_they_were(review: ReviewedTestset) -> None:
    review.decide("t1", "approve", version_of(ROWS[0]))
    review.decide("t2", "reject", version_of(ROWS[1]))
    correction = Correction(" What is Indonesia's flower? ", ("Phalaenopsis amabilis", " ", "moth orchid"))
    review.decide("t3", "edit", version_of(ROWS[2]), correction)

    one, two, three = Testset.load(review.path)
    assert (one.status, two.status, three.status) == ("approved", "rejected", "approved")
    assert (three.question, three.answers) == ("What is Indonesia's flower?", ("Phalaenopsis amabilis", "moth orchid"))
    assert three.supporting_ids == ROWS[2].supporting_ids
    assert ReviewedTestset(review.path).rows() == (one, two, three)

    undone = review.decide("t2", "undo", version_of(two))
    assert undone.status == "new"


def test_a_decision_about_a_row_that_changed_meanwhile_is_refused(review: ReviewedTestset) -> None:
    review.decide("t1", "edit", version_of(ROWS[0]), Correction("Who named the Cattleya?", ("Lindley",)))
    with pytest.raises(EvaluationError, match="changed this row meanwhile"):
        review.decide("t1", "reject", version_of(ROWS[0]))
    with pytest.raises(EvaluationError, match="has no row 't9'"):
        review.decide("t9", "reject", "")
    with pytest.raises(EvaluationError, match="needs a question"):
        review.decide("t2", "edit", version_of(ROWS[1]), Correction("  ", ()))
    assert [row.status for row in review.rows()] == ["approved", "new", "new"]


def test_a_row_that_is_added_stands_behind_the_others_once(review: ReviewedTestset) -> None:
    row = TestsetRow("t4", ANSWERED[3], "fact", ("Edmond Albius",), supporting_ids=("vanilla",))
    review.add(row)
    review.add(row)
    assert [each.id for each in review.rows()] == ["t1", "t2", "t3", "t4"]
    assert review.rows()[-1].status == "approved"


def test_a_file_that_is_no_test_set_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(EvaluationError, match="no row of a test set"):
        ReviewedTestset(tmp_path / "x.jsonl")


def test_a_set_that_is_made_again_keeps_what_was_decided() -> None:
    rejected = TestsetRow("t1", "Who?", "fact", status="rejected")
    edited = TestsetRow("t7", "Who was it?", "fact", ("Ada",), status="approved")
    made = with_decisions(Testset(ROWS), [rejected, edited, TestsetRow("t8", "Old?", "fact")])
    assert [(row.id, row.status) for row in made] == [
        ("t1", "rejected"), ("t2", "new"), ("t3", "new"), ("t7", "approved")
    ]  # fmt: skip


def test_rejected_and_stale_rows_are_not_asked_and_the_first_are_not_marked_stale(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    stale = TestsetRow("t4", ANSWERED[3], "fact", ("Albius",), supporting_ids=("gone",), status="stale")
    file = Testset((*ROWS, stale)).save(tmp_path / "test.jsonl")
    ReviewedTestset(file).decide("t2", "reject", version_of(ROWS[1]))
    with Workspace.open(path) as space:
        result = evaluate(space, file)
        updated = update_testset(space, Testset.load(file), new=0)
    assert {row.question_id for row in result.rows} == {"t1", "t3"}
    assert result.notes == ("The test set has 1 rejected row and 1 stale row, which are not asked.",)
    assert [row.status for row in updated.testset][1] == "rejected"


def test_a_set_of_which_no_row_is_asked_is_refused_with_what_to_do() -> None:
    rows = [{"question": row.question, "supporting_ids": ["x"], "status": "stale"} for row in ROWS]
    with pytest.raises(EvaluationError, match=r"only 3 stale rows, which are not asked.*kraq testset update"):
        evaluate(lambda question, k: [], rows, ["recall@5"])


def test_a_column_of_ones_own_named_status_may_hold_anything() -> None:
    rows = [{"question": "Who is Ada?", "answer": "Ada", "status": ["open", 3]}]
    assert len(evaluate(lambda question, k: [], rows, ["answer_found"]).rows) == 1


def test_making_the_set_again_keeps_decisions(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "orchids.kraq")
    file = tmp_path / "test.jsonl"
    words = ["testset", "make", str(path), "--out", str(file), "-n", "6", "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    review = ReviewedTestset(file)
    first, *_ = review.rows()
    review.decide(first.id, "reject", version_of(first))
    assert CliRunner().invoke(app, words).exit_code == 0
    statuses = {row["id"]: row["status"] for row in map(json.loads, file.read_text("utf-8").splitlines())}
    assert statuses[first.id] == "rejected"
