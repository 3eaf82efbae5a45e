"""Tests that judges score what their models say, ask nothing about a blank answer, and quote what they cannot read."""

import json
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response
from dspy.utils.dummies import DummyLM

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import BinaryJudge, RubricJudge
from kraq_dspy.eval.judges import ContextPrecision, ContextRecall, Groundedness, JudgedMetric, repeats_question

EXAMPLE = dspy.Example(question="Which city?", answers=["Oslo"])


def score(judge: JudgedMetric, lm: Any, answer: str = "Oslo", **more: Any) -> float:
    with dspy.context(lm=lm):
        return judge.score(EXAMPLE.copy(**more), dspy.Prediction(answer=answer))


@pytest.mark.parametrize(("reply", "expected"), [("True", 1.0), ("False", 0.0), ("yes", 1.0)])
def test_a_binary_judge_scores_one_or_zero(reply: str, expected: float) -> None:
    assert score(BinaryJudge(), DummyLM([{"correct": reply}])) == expected


def test_a_judge_that_says_maybe_is_a_failure_that_quotes_it() -> None:
    with pytest.raises(EvaluationError, match=r"no verdict.*maybe"):
        score(BinaryJudge(), DummyLM([{"correct": "maybe"}] * 2))


def test_a_list_question_goes_to_the_list_judge_with_all_synonyms() -> None:
    lm = DummyLM([{"correct": "True"}])
    assert score(BinaryJudge(), lm, answer_items=[["Humira", "adalimumab"], ["infliximab"]]) == 1.0
    prompt = str(lm.history[-1]["messages"])
    assert "adalimumab" in prompt
    assert "reference_items" in prompt


def test_a_blank_answer_is_wrong_without_asking() -> None:
    lm = DummyLM([])
    assert score(BinaryJudge(), lm, " ") == 0.0
    assert lm.history == []


@pytest.mark.parametrize(("grade", "expected"), [("5", 1.0), ("4", 1.0), ("3", 0.0), ("1", 0.0)])
def test_grades_from_four_on_count_as_right(grade: str, expected: float) -> None:
    with dspy.context(lm=DummyLM([{"feedback": "Partly.", "grade": grade}])):
        verdict = RubricJudge()(EXAMPLE, dspy.Prediction(answer="Oslo"))
    assert (verdict.score, verdict.grade, verdict.feedback) == (expected, int(grade), "Partly.")


def test_a_grade_outside_the_rubric_is_a_failure() -> None:
    with pytest.raises(EvaluationError, match="no verdict"):
        score(RubricJudge(), DummyLM([{"feedback": "Great.", "grade": "6"}] * 2))


def test_context_recall_of_a_list_asks_for_all_items_whatever_was_answered() -> None:
    statements = [{"statement": "Humira", "attributed": True}, {"statement": "infliximab", "attributed": False}]
    lm = DummyLM([{"statements": json.dumps(statements)}])
    items = [["Humira", "adalimumab"], ["infliximab"]]

    of_no_answer = score(ContextRecall(), lm, " ", answer_items=items, passages=["Humira is one of them."])

    assert of_no_answer == 0.5
    assert "Humira; infliximab" in str(lm.history[-1]["messages"])


BUILT = dspy.Example(question="Who built the lighthouse of Tarnvik?", answers=["Maren Holt"], passages=["The ferry."])


@pytest.mark.parametrize("repeated", ["Who built the lighthouse of Tarnvik?", "The lighthouse of Tarnvik was built."])
@pytest.mark.parametrize("judge", [ContextRecall, ContextPrecision, Groundedness])
def test_a_statement_that_repeats_the_question_counts_for_no_metric(judge: type[JudgedMetric], repeated: str) -> None:
    verdict = "supported" if judge is Groundedness else "attributed"
    statements = [{"statement": repeated, verdict: True}, {"statement": "Maren Holt built it.", verdict: False}]

    with dspy.context(lm=DummyLM([{"statements": json.dumps(statements)}])):
        assert judge().score(BUILT, dspy.Prediction(answer="Maren Holt")) == 0.0


def test_a_judge_that_only_repeats_the_question_is_a_failure_and_makes_no_passage_useful() -> None:
    lm = DummyLM([{"statements": json.dumps([{"statement": BUILT.question, "attributed": True}])}] * 2)

    with dspy.context(lm=lm):
        assert ContextPrecision().score(BUILT, dspy.Prediction()) == 0.0
        with pytest.raises(EvaluationError, match="no statement in the gold answer"):
            ContextRecall().score(BUILT, dspy.Prediction())


@pytest.mark.parametrize(
    ("statement", "question", "answer"),
    [
        ("The mill is old.", "Is the mill old?", "No, it is not."),
        ("The mill was built first.", "Which was built first, the mill or the inn?", "the mill"),
        ("The mill was built by Ida.", "Who built the mill?", "Ida"),
        ("Ida", "Who built the mill?", "Ida"),
        ("Who built the mill?", "What did Ida ask?", "Who built the mill?"),
    ],
)
def test_what_the_answer_says_is_kept_though_it_has_the_words_of_the_question(
    statement: str, question: str, answer: str
) -> None:
    assert not repeats_question(statement, question, answer)


class RefusingEngine:
    supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens"})

    def __deepcopy__(self, memo: dict[int, Any]) -> "RefusingEngine":
        return self

    def complete(self, request: Request) -> Response:
        raise dspy.lm15.InvalidRequestError("the prompt is not to my taste")


def test_a_call_that_the_model_refuses_is_a_failure_with_the_reason() -> None:
    with pytest.raises(EvaluationError, match="not to my taste"):
        score(BinaryJudge(), dspy.LM("refusing", engine=RefusingEngine(), num_retries=0, cache=False))


def test_no_model_at_all_ends_the_run() -> None:
    with pytest.raises(ValueError, match="No LM is loaded"):
        score(BinaryJudge(), None)


def test_an_example_without_an_answer_cannot_be_judged() -> None:
    with pytest.raises(EvaluationError, match="has no `answers`"):
        score(BinaryJudge(), DummyLM([]), answers=[])
