"""Drafts: one answer with its reasons from each subset of the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import dspy
from dspy.utils.exceptions import DSPyError

from kraq_dspy.errors import BudgetExceededError, ModelError, ServerDownError
from kraq_dspy.lms.logprobs import field_logprobs, take_logprobs


@dataclass(frozen=True, slots=True)
class Draft:
    """What the drafter made of one subset. `passages` are positions among the retrieved hits.

    The log-probabilities are those of the tokens of `rationale` and `response`; empty where the scorer needs none.
    `seconds` is the time from request to answer, as measured among the other drafts in flight.
    """

    number: int
    passages: tuple[int, ...]
    rationale: str
    response: str
    seconds: float
    rationale_logprobs: tuple[float, ...] = ()
    response_logprobs: tuple[float, ...] = ()


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


def write_draft(predict: dspy.Module, question: str, task: DraftTask) -> Draft | FailedDraft:
    """Ask the drafter. What goes wrong with this draft alone becomes a FailedDraft.

    Raises MissingLogprobsError, and the errors that end a run: a spent budget, a server that is down.
    """
    started = perf_counter()
    try:
        prediction = predict(**_inputs(question, task))
    except (DSPyError, ModelError) as error:
        return _failed(task, error, started)
    return _draft(prediction, task, perf_counter() - started)


async def awrite_draft(predict: dspy.Module, question: str, task: DraftTask) -> Draft | FailedDraft:
    """As `write_draft`; cancelling it cancels the request."""
    started = perf_counter()
    try:
        prediction = await predict.acall(**_inputs(question, task))
    except (DSPyError, ModelError) as error:
        return _failed(task, error, started)
    return _draft(prediction, task, perf_counter() - started)


def raise_if_final(error: BaseException) -> None:
    """Raise what lies behind a model error if no other call can succeed either."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BudgetExceededError | ServerDownError):
            raise cause
        cause = cause.__cause__


def in_one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _inputs(question: str, task: DraftTask) -> Mapping[str, Any]:
    config = {"logprobs": True} if task.wanted_by else {}
    return {"question": question, "passages": list(task.texts), "config": config}


def _failed(task: DraftTask, error: Exception, started: float) -> FailedDraft:
    raise_if_final(error)
    return FailedDraft(task.number, task.passages, in_one_line(error), perf_counter() - started)


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
    )
