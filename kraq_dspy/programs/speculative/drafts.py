"""Drafts an answer with its reasons from each subset of the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import CALL_ERRORS, in_one_line, raise_if_final
from kraq_dspy.models.lms.logprobs import field_logprobs, take_logprobs


@dataclass(frozen=True, slots=True)
class Draft:
    """What the drafter made of one subset. `passages` are positions among the retrieved hits.

    The log-probabilities are those of the tokens of `rationale` and `response`; empty where the scorer needs none.
    `seconds` is the time from request to answer, as measured among the other drafts in flight. `extras` are further
    outputs of the step.
    """

    number: int
    passages: tuple[int, ...]
    rationale: str
    response: str
    seconds: float
    rationale_logprobs: tuple[float, ...] = ()
    response_logprobs: tuple[float, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedDraft:
    """A draft that could not be had, or not be scored, and why."""

    number: int
    passages: tuple[int, ...]
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DraftTask:
    """One subset of the evidence on its way to the drafter. `wanted_by` names a scorer that needs log-probabilities."""

    number: int
    passages: tuple[int, ...]
    texts: tuple[str, ...]
    wanted_by: str | None


async def write_draft(predict: dspy.Module, question: str, task: DraftTask) -> Draft | FailedDraft:
    """Ask the drafter. What goes wrong with this draft alone becomes a FailedDraft; cancelling cancels the request.

    Raises MissingLogprobsError, and the errors that end a run: a spent budget, a server that is down.
    """
    started = perf_counter()
    options = {"config": {"logprobs": True}} if task.wanted_by else {}
    try:
        prediction = await call(predict, question=question, passages=list(task.texts), **options)
    except CALL_ERRORS as error:
        raise_if_final(error)
        return FailedDraft(task.number, task.passages, in_one_line(error), perf_counter() - started)
    return _draft(prediction, task, perf_counter() - started)


def _draft(prediction: dspy.Prediction, task: DraftTask, seconds: float) -> Draft | FailedDraft:
    fields = {name: str(prediction[name] or "").strip() for name in ("rationale", "response")}
    scored: Mapping[str, Sequence[float]] = {}
    missing = [name for name, value in fields.items() if not value]
    if missing:
        return FailedDraft(task.number, task.passages, f"The model left {' and '.join(missing)} empty.", seconds)
    if task.wanted_by:
        scored = field_logprobs(take_logprobs(prediction, role="drafter", wanted_by=task.wanted_by), fields)
        missing = [name for name in fields if name not in scored]
    if missing:
        reason = f"The log-probabilities of {' and '.join(missing)} could not be told apart in the model's answer."
        return FailedDraft(task.number, task.passages, reason, seconds)
    return Draft(
        number=task.number,
        passages=task.passages,
        **fields,
        seconds=seconds,
        rationale_logprobs=tuple(scored.get("rationale", ())),
        response_logprobs=tuple(scored.get("response", ())),
        extras={name: value for name, value in prediction.items() if name not in fields},
    )
