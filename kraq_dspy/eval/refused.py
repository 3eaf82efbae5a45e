"""Counts refusals: of questions that the documents do not answer, and of those that they do, where questions say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.rag import is_unanswerable
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.statistics import Interval, bootstrap_mean
from kraq_dspy.programs.qa_search.program import is_answered


@dataclass(frozen=True, slots=True)
class RefusalRates:
    """How a system dealt with `unanswerable` questions, and with the `answerable` ones of the same
    file.

    `refused` is the share of unanswerable questions that the index's threshold or the answer ("I do not
    know") refuses, and `by_threshold` the share that the threshold alone refuses. `false_answers` is the
    rest, which got an answer. `false_refusals` is the share of the answerable ones that were
    refused or passed over.
    """

    unanswerable: int
    answerable: int
    refused: Interval
    by_threshold: Interval
    false_answers: Interval
    false_refusals: Interval | None


def is_answerable(example: Example) -> bool:
    """What the question says of itself; one that says nothing is answerable.

    >>> is_answerable(Example("q1", "Who?", (), type="unanswerable"))
    False
    """
    return not is_unanswerable(example.type, example.metadata.get("answerable"))


def what_was_told(example: Example, prediction: dspy.Prediction, *, answers: bool) -> dict[str, Any]:
    """What a row keeps of it: whether it is answerable, whether the threshold refuses it, whether an answer passed over
    it (None of a retriever, which gives none)."""
    return {
        "answerable": is_answerable(example),
        "below_threshold": prediction.get("answerable") is False,
        "passed_over": not is_answered(prediction) if answers else None,
        "answerable_score": prediction.get("answerable_score"),
    }


def refusal_rates(rows: Sequence[ResultRow], *, seed: int = 0) -> RefusalRates | None:
    """Count the refusals of one system's rows that were answered; None if none of them is
    unanswerable.

    >>> told = {"answerable": False, "below_threshold": True, "passed_over": False}
    >>> refusal_rates([ResultRow("q1", "rag", extra={"refusal": told})]).refused.estimate
    1.0
    """
    refusals = [row.extra["refusal"] for row in rows if row.failure is None and "refusal" in row.extra]
    unanswerable = [each for each in refusals if not each["answerable"]]
    answerable = [each for each in refusals if each["answerable"]]
    if not unanswerable:
        return None

    refused = [_is_refused(each) for each in unanswerable]
    return RefusalRates(
        unanswerable=len(unanswerable),
        answerable=len(answerable),
        refused=_share(refused, seed),
        by_threshold=_share([bool(each["below_threshold"]) for each in unanswerable], seed),
        false_answers=_share([not each for each in refused], seed),
        false_refusals=_share([_is_refused(each) for each in answerable], seed) if answerable else None,
    )


def _is_refused(refusal: Mapping[str, Any]) -> bool:
    return bool(refusal["below_threshold"] or refusal["passed_over"])


def _share(values: Sequence[bool], seed: int) -> Interval:
    return bootstrap_mean([float(value) for value in values], seed=seed)
