"""Tells model calls that failed by themselves from those that end a run."""

import logging
from collections.abc import Iterator
from typing import Any

from dspy.utils.exceptions import DSPyError

from kraq_dspy.errors import BudgetExceededError, ModelError, ServerDownError

CALL_ERRORS = (DSPyError, ModelError)
"""What a call of a model may raise: a refusal, a reply that cannot be read, a prompt that is too long."""


def raise_if_final(error: BaseException) -> None:
    """Raise what lies behind a model error if no other call can succeed either: a spent budget, a server that is
    down."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BudgetExceededError | ServerDownError):
            raise cause
        cause = cause.__cause__


def in_one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def log_failure(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Warn that a call failed which its caller can do without. Raises what ends a run, as `raise_if_final`."""
    raise_if_final(error)
    logger.warning("%s: %s", what, in_one_line(error))


AGAIN = 2
"""How often a model is asked once more."""


def attempts(again: int = AGAIN) -> Iterator[dict[str, Any]]:
    """What a call takes beside its inputs, for the first one and for each further one."""
    yield {}
    for number in range(1, 1 + again):
        yield {"config": {"temperature": 1.0, "rollout_id": number}}
