"""Refuses gold answers and predictions from which no metric can be computed."""

from collections.abc import Sequence

from kraq_dspy.errors import EvaluationError


def check_references(gold: Sequence[str]) -> Sequence[str]:
    """`gold` itself. Raises EvaluationError when it is a bare string, is empty, or holds a blank or another type."""
    if isinstance(gold, str):
        raise EvaluationError(
            f"The gold answers are the string {gold!r}; expected a sequence of strings. Write [{gold!r}]."
        )
    if not gold:
        raise EvaluationError(
            "There are no gold answers, so the metric is undefined. Leave unanswerable questions out, or score them by "
            "another metric."
        )
    for position, reference in enumerate(gold):
        if not isinstance(reference, str) or not reference.strip():
            raise EvaluationError(
                f"Gold answer {position} is {reference!r}; expected text. A blank reference would match every answer."
            )
    return gold


def check_prediction(predicted: str) -> str:
    """`predicted` itself; the empty string is a (wrong) answer. Raises EvaluationError when it is not a string."""
    if not isinstance(predicted, str):
        raise EvaluationError(
            f"The predicted answer is {predicted!r}; expected a string. A question without an answer is a failed row, "
            "not a score."
        )
    return predicted
