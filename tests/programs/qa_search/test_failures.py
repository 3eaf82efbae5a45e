import dspy
import pytest

from kraq_dspy.programs.qa_search.failures import failure_of


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
