"""The evidence of a test set goes out as TREC qrels and comes back; files of BEIR are read, too."""

from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.evidence import with_qrels
from kraq_dspy.eval.questions import read_questions
from kraq_dspy.records import TestsetRow
from kraq_dspy.testset.qrels import read_qrels, write_qrels

ROWS = [
    TestsetRow("t1", "Who built the mill?", "fact", ("Nora",), supporting_ids=("mill", "bells")),
    TestsetRow("t2", "Who sank the ferry?", "unanswerable"),
]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = write_qrels(ROWS, tmp_path / "test.qrels")

    assert file.read_text() == "t1 0 mill 1\nt1 0 bells 1\n"
    assert read_qrels(file) == {"t1": ("mill", "bells")}


def test_an_id_with_a_space_is_refused(tmp_path: Path) -> None:
    row = TestsetRow("t1", "Who?", "fact", supporting_ids=("Ada Lovelace",))

    with pytest.raises(EvaluationError, match="'Ada Lovelace' has a space"):
        write_qrels([row], tmp_path / "x.qrels")


def test_a_file_of_beir_and_judgements_of_no_relevance_are_read(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tAda Lovelace\t2\nq1\tb\t0\n")

    assert read_qrels(tmp_path / "test.tsv") == {"q1": ("Ada Lovelace",)}


def test_questions_get_the_evidence_of_their_ids(tmp_path: Path) -> None:
    asked = read_questions([{"id": "q1", "question": "Who?", "source": "x"}, {"id": "q2", "question": "Where?"}])
    (tmp_path / "x.qrels").write_text("q1 0 ada 1\n")

    assert [each.supporting_ids for each in with_qrels(asked, tmp_path / "x.qrels")] == [("ada",), ()]


@pytest.mark.parametrize(("text", "said"), [("q1 0 ada", "line 1"), ("z 0 ada 1", "names none"), ("", "names none")])
def test_what_is_no_qrels_or_of_other_questions_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.qrels").write_text(text)

    with pytest.raises(EvaluationError, match=said):
        with_qrels(read_questions([{"id": "q1", "question": "Who?"}]), tmp_path / "x.qrels")
