"""Says in which way a program failed at a question, so that a review sees what to mend."""

from typing import Any

BROKE_OFF, NOTHING_FOUND, NO_ANSWER, REJECTED = FAILURES = ("broke off", "nothing found", "no answer", "rejected")
"""A call failed; no passage was found; it had passages and gave no answer; it judged its own answer wrong."""


def failure_of(prediction: Any) -> str:
    """How a program ended that did not answer; None stands for one that broke off."""
    if prediction is None:
        return BROKE_OFF
    if prediction.get("valid") is False:
        return REJECTED
    return NO_ANSWER if prediction.get("hits") else NOTHING_FOUND
