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
    """The drafter's answer from one subset. `passages` are positions among the retrieved hits.

    The log-probabilities belong to the tokens of `rationale` and `response`. `seconds` is the time from request to
    answer. `extras` are further outputs of the step.
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
    """A draft that failed or that kraq could not score, and the reason."""

    number: int
    passages: tuple[int, ...]
    reason: str
    seconds: float


async def write_draft(
    predict: dspy.Module,
    question: str,
    texts: Sequence[str],
    *,
    number: int,
    passages: tuple[int, ...],
    wanted_by: str | None,
    further: Mapping[str, Any] | None = None,
) -> Draft | FailedDraft:
    """Ask the drafter. If only this draft fails, it becomes a FailedDraft; cancelling cancels the
    request.

    `texts` are the passages at the positions `passages`. `wanted_by` names a scorer that needs
    log-probabilities. `further` are the values of further inputs, if the drafter has a signature of
    the user's. Raises MissingLogprobsError, and the errors that end a run: a spent budget, a server
    that is down.
    """
    started = perf_counter()

    def failed(reason: str) -> FailedDraft:
        return FailedDraft(number, passages, reason, perf_counter() - started)

    options = {"config": {"logprobs": True}} if wanted_by else {}
    try:
        prediction = await call(predict, question=question, passages=list(texts), **(further or {}), **options)
    except CALL_ERRORS as error:
        raise_if_final(error)
        return failed(in_one_line(error))

    fields = {name: str(prediction[name] or "").strip() for name in ("rationale", "response")}
    if empty := [name for name, text in fields.items() if not text]:
        return failed(f"The model left {' and '.join(empty)} empty.")

    logprobs: Mapping[str, Sequence[float]] = {}
    if wanted_by:
        of_all_tokens = take_logprobs(prediction, role="drafter", wanted_by=wanted_by)
        logprobs = field_logprobs(of_all_tokens, fields)
        if missing := [name for name in fields if name not in logprobs]:
            return failed(f"The log-probabilities of {' and '.join(missing)} could not be told apart in its answer.")

    return Draft(
        number,
        passages,
        **fields,
        seconds=perf_counter() - started,
        rationale_logprobs=tuple(logprobs.get("rationale", ())),
        response_logprobs=tuple(logprobs.get("response", ())),
        extras={name: value for name, value in prediction.items() if name not in fields},
    )
