from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.judges import AnsweredQuestion, BinaryJudge, RubricJudge, judge_answers


def asked(number: int, answer: str = "Oslo", **more: Any) -> AnsweredQuestion:
    return AnsweredQuestion(f"q{number}", f"Question {number}?", ("Oslo",), answer, **more)


def judge_by_question(**replies: str) -> DummyLM:
    """A model whose verdict depends on the question in the prompt, so that the order of calls does not matter."""
    return DummyLM({f"Question {number[1:]}?": {"correct": reply} for number, reply in replies.items()})


def test_a_binary_judge_scores_one_or_zero() -> None:
    with dspy.context(lm=judge_by_question(q1="True", q2="False", q3="yes")):
        verdicts = judge_answers(BinaryJudge(), [asked(1), asked(2), asked(3)])
    assert verdicts.scores == {"q1": 1.0, "q2": 0.0, "q3": 1.0}
    assert verdicts.failures == ()
    assert verdicts.model == "dummy"


def test_a_judge_that_says_maybe_is_a_counted_failure_that_names_the_question() -> None:
    with dspy.context(lm=judge_by_question(q1="True", q2="maybe")):
        verdicts = judge_answers(BinaryJudge(), [asked(1), asked(2)])
    assert verdicts.scores == {"q1": 1.0}
    (failure,) = verdicts.failures
    assert (failure.stage, failure.item_id) == ("judge", "q2")
    assert "no verdict" in failure.reason
    assert "maybe" in failure.reason


def test_a_list_question_goes_to_the_list_judge_with_all_synonyms() -> None:
    lm = DummyLM([{"correct": "True"}])
    with dspy.context(lm=lm):
        verdicts = judge_answers(BinaryJudge(), [asked(1, answer_items=(("Humira", "adalimumab"), ("infliximab",)))])
    assert verdicts.scores == {"q1": 1.0}
    prompt = str(lm.history[-1]["messages"])
    assert "adalimumab" in prompt
    assert "reference_items" in prompt


def test_a_blank_answer_is_wrong_without_asking() -> None:
    lm = DummyLM([])
    with dspy.context(lm=lm):
        assert judge_answers(BinaryJudge(), [asked(1, " ")]).scores == {"q1": 0.0}
    assert lm.history == []


def test_verdicts_keep_the_order_of_the_questions_under_concurrency() -> None:
    questions = [asked(number) for number in range(100, 140)]
    replies = {question.id: str(int(question.id[1:]) % 2 == 0) for question in questions}
    with dspy.context(lm=judge_by_question(**replies)):
        verdicts = judge_answers(BinaryJudge(), questions, concurrency=8)
    assert [verdict.question_id for verdict in verdicts.verdicts] == [question.id for question in questions]
    assert sum(verdicts.scores.values()) == 20


@pytest.mark.parametrize(("grade", "score"), [("5", 1.0), ("4", 1.0), ("3", 0.0), ("1", 0.0)])
def test_grades_from_four_on_count_as_right(grade: str, score: float) -> None:
    with dspy.context(lm=DummyLM([{"feedback": "Partly.", "grade": grade}])):
        (verdict,) = judge_answers(RubricJudge(), [asked(1)]).verdicts
    assert (verdict.score, verdict.grade, verdict.feedback) == (score, int(grade), "Partly.")


def test_a_grade_outside_the_rubric_is_a_failure() -> None:
    with dspy.context(lm=DummyLM([{"feedback": "Great.", "grade": "6"}] * 2)):
        verdicts = judge_answers(RubricJudge(), [asked(1)])
    assert verdicts.verdicts == ()
    assert [failure.item_id for failure in verdicts.failures] == ["q1"]


class RefusingEngine:
    supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens"})

    def __deepcopy__(self, memo: dict[int, Any]) -> "RefusingEngine":
        return self

    def complete(self, request: Request) -> Response:
        raise dspy.lm15.InvalidRequestError("the prompt is not to my taste")


def test_a_call_that_the_model_refuses_is_a_failure_with_the_reason() -> None:
    with dspy.context(lm=dspy.LM("refusing", engine=RefusingEngine(), num_retries=0, cache=False)):
        verdicts = judge_answers(BinaryJudge(), [asked(1)])
    (failure,) = verdicts.failures
    assert failure.item_id == "q1"
    assert "not to my taste" in failure.reason


def test_no_model_at_all_ends_the_run() -> None:
    with dspy.context(lm=None), pytest.raises(ValueError, match="No LM is loaded"):
        judge_answers(BinaryJudge(), [asked(1), asked(2)])


def test_gold_data_that_cannot_be_judged_names_the_question() -> None:
    with pytest.raises(EvaluationError, match="Question 'q1': There are no gold answers"):
        judge_answers(BinaryJudge(), [AnsweredQuestion("q1", "?", (), "Oslo")])
    with pytest.raises(EvaluationError, match="'q1' occurs twice"):
        judge_answers(BinaryJudge(), [asked(1), asked(1)])
