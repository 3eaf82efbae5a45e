"""The metric of whole RAG programs knows answers, evidence and refusals, and says what went wrong."""

from typing import Any

import dspy
import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import rag_metric, rag_quality, substring_match
from kraq_dspy.eval.metrics.for_dspy import ScoredFeedback
from kraq_dspy.records import Chunk, Hit

GOLD = {"question": "Who keeps the light?", "answers": ["Ida Berg"], "supporting_ids": ["lurr", "tarn"]}
ANSWERABLE = dspy.Example(**GOLD).with_inputs("question")
UNANSWERABLE = dspy.Example(question="Who keeps the mine?", answers=[], answerable=False).with_inputs("question")


def asked_by_gepa(example: dspy.Example, prediction: dspy.Prediction) -> ScoredFeedback:
    reply = rag_quality(example, prediction, None, "answer", None)
    assert isinstance(reply, ScoredFeedback)
    return reply


def found(*document_ids: str) -> list[Hit]:
    texts = {"lurr": "Ida Berg keeps the light.", "tarn": "The light is at Tarn.", "vik": "Vik has a school."}
    return [Hit(Chunk(f"c-{name}", name, 0, 0, 0, texts[name], 5), 1.0, "", "dense") for name in document_ids]


@pytest.mark.parametrize(
    ("example", "prediction", "score", "says"),
    [
        (ANSWERABLE, {"answer": "Ida Berg", "hits": found("lurr", "tarn")}, 1.0, "is right. The evidence was found."),
        (ANSWERABLE, {"answer": "Ida Berg", "hits": found("lurr")}, 0.75, "evidence were not found: tarn"),
        (ANSWERABLE, {"answer": "Ida Berg", "hits": found("vik")}, 0.5, "not found: lurr, tarn"),
        (ANSWERABLE, {"answer": "Karl", "hits": found("lurr", "tarn")}, 0.0, "No passage has these words of it: karl"),
        (ANSWERABLE, {"answer": "I do not know", "hits": found("vik")}, 0.0, "refused, which is wrong"),
        (ANSWERABLE, {"answer": "Ida Berg", "refused": True}, 0.0, "The right answer is 'Ida Berg'"),
        (UNANSWERABLE, {"answer": "The passages do not say."}, 1.0, "refused, which is right"),
        (UNANSWERABLE, {"answer": "No such mine", "refused": True}, 1.0, "refused, which is right"),
        (UNANSWERABLE, {"answer": "Ida Berg", "hits": found("vik")}, 0.0, "do not answer this question"),
    ],
)
def test_score_and_feedback_name_what_happened(
    example: dspy.Example, prediction: dict[str, Any], score: float, says: str
) -> None:
    predicted = dspy.Prediction(**prediction)
    reply = asked_by_gepa(example, predicted)
    assert rag_quality(example, predicted) == reply.score == score
    assert says in reply.feedback
    assert bool(reply) == (score >= 0.8)


def test_a_module_of_ones_own_gives_response_and_context_in_place_of_answer_and_hits() -> None:
    read = dspy.Prediction(response="Ida Berg", context=["Ida Berg keeps the light."])
    by_luck = dspy.Prediction(response="Ida Berg", context=["Vik has a school."])
    assert (rag_quality(ANSWERABLE, read), rag_quality(ANSWERABLE, by_luck)) == (1.0, 0.5)
    assert "in other words" in asked_by_gepa(ANSWERABLE, by_luck).feedback


def test_without_anything_that_tells_the_evidence_the_answer_alone_counts() -> None:
    assert rag_quality(ANSWERABLE, dspy.Prediction(answer="Ida Berg")) == 1.0
    yes = dspy.Example(question="Is it lit?", answers=["yes"])
    assert rag_quality(yes, dspy.Prediction(answer="yes", context=["It is lit each night."])) == 1.0


def test_gold_passages_of_an_example_are_no_evidence_that_a_program_found() -> None:
    example = dspy.Example(**GOLD, passages=["Ida Berg keeps the light."]).with_inputs("question")
    assert "evidence" not in asked_by_gepa(example, dspy.Prediction(answer="Karl")).feedback


def test_another_metric_may_say_what_is_right() -> None:
    wordy = dspy.Prediction(answer="It is Ida Berg who has kept the light of Lurr for forty years.")
    assert rag_quality(ANSWERABLE, wordy) < 0.5
    lenient = rag_metric(substring_match)
    assert (lenient.name, lenient(ANSWERABLE, wordy)) == ("rag_quality(substring_match)", 1.0)


def test_a_question_of_a_type_that_nothing_answers_needs_no_gold() -> None:
    assert rag_quality.is_defined(dspy.Example(question="?", type="null_query"))
    assert rag_quality.is_defined(UNANSWERABLE)
    without_gold = dspy.Example(question="?", answers=[])
    assert not rag_quality.is_defined(without_gold)
    with pytest.raises(EvaluationError, match="no `answers`"):
        rag_quality(without_gold, dspy.Prediction(answer="Ida"))
