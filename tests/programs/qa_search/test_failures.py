import dspy
import pytest

from kraq_dspy.programs.qa_search.failures import class_of, count_classes, failure_of
from kraq_dspy.records import AnswerEvidence, CatalogueEntry

SEEN = (AnswerEvidence("c1", "d1", "The Keep was built in 1350 by Anna Smith."),)


def failed(failure: str, answer: str = "", evidence: tuple[AnswerEvidence, ...] = SEEN) -> CatalogueEntry:
    return CatalogueEntry(1, "Who built it?", answer, "pending", evidence=evidence, asked=1, failure=failure)


@pytest.mark.parametrize(
    ("prediction", "failure"),
    [
        (None, "broke off"),
        (dspy.Prediction(answer="", hits=[]), "nothing found"),
        (dspy.Prediction(answer="I do not know", hits=["a hit"]), "no answer"),
        (dspy.Prediction(answer="I do not know", hits=["a hit"], valid=False), "rejected"),
    ],
)
def test_how_a_program_ended_is_told_at_once(prediction: dspy.Prediction | None, failure: str) -> None:
    assert failure_of(prediction) == failure


def test_a_known_answer_tells_whether_the_passages_had_held_it() -> None:
    assert class_of(failed("no answer")) == "no answer"
    assert class_of(failed("no answer", "Anna Smith, in 1350")) == "not read"
    assert class_of(failed("rejected", "Bert Jones, in 1350")) == "not found"
    assert class_of(failed("nothing found", "Anna Smith", evidence=())) == "nothing found"


def test_entries_that_no_program_failed_at_have_no_class() -> None:
    entries = [failed("no answer"), failed("no answer"), failed("broke off"), failed("")]
    assert count_classes(entries) == {"no answer": 2, "broke off": 1}
