"""DSPy's Evaluate scores our programs with our metrics, plain and with feedback."""

from collections.abc import Callable

import dspy
import pytest

import kraq_dspy as kraq
from kraq_dspy.programs import TraditionalRAG


@pytest.mark.parametrize("metric", [kraq.eval.exact_match, kraq.eval.exact_match.with_feedback()])
def test_evaluate_averages_the_metric_over_the_dev_set(
    lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example], metric: Callable[..., float]
) -> None:
    evaluate = dspy.Evaluate(devset=devset, metric=metric, num_threads=2, display_progress=False)
    with dspy.context(lm=lm):
        result = evaluate(program)
    assert result.score == 75.0  # all but the Volga
    assert [float(score) for _, _, score in result.results] == [1.0, 1.0, 1.0, 0.0]


def test_a_judge_is_a_metric_too(lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example]) -> None:
    judge = dspy.ChainOfThought("question, answer, reference -> correct: bool")
    judge.set_lm(dspy.utils.DummyLM([{"reasoning": "x", "correct": "True"}] * 4))

    def judged(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> bool:
        verdict = judge(question=example.question, answer=prediction.answer, reference=example.answer)
        return bool(verdict.correct)

    with dspy.context(lm=lm):
        result = dspy.Evaluate(devset=devset, metric=judged, num_threads=1, display_progress=False)(program)
    assert result.score == 100.0
