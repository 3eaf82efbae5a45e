"""Says in which way a program failed at a question, so that a review sees what to mend.

The QA search paper leaves open why its questions were answered wrongly (limitations). What can be told at once is how
the program ended; once a right answer is known, whether the passages that it saw had held that.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kraq_dspy.records import CatalogueEntry

BROKE_OFF, NOTHING_FOUND, NO_ANSWER, REJECTED = "broke off", "nothing found", "no answer", "rejected"
NOT_READ, NOT_FOUND = "not read", "not found"
CLASSES = {
    BROKE_OFF: "a call failed",
    NOTHING_FOUND: "no passage was found",
    NO_ANSWER: "it had passages and gave no answer",
    REJECTED: "it judged its own answer wrong",
    NOT_READ: "no answer, though the passages that it saw hold the one known now",
    NOT_FOUND: "no answer, and the passages that it saw lack the one known now",
}
_HELD = 0.6  # share of an answer's words that a passage must have


def failure_of(prediction: Any) -> str:
    """How a program ended that did not answer; None stands for one that broke off."""
    if prediction is None:
        return BROKE_OFF
    if prediction.get("valid") is False:
        return REJECTED
    return NO_ANSWER if prediction.get("hits") else NOTHING_FOUND


def class_of(entry: CatalogueEntry) -> str:
    """One of CLASSES; "" for an entry that no program failed at, or none that is known."""
    if entry.failure in (NO_ANSWER, REJECTED) and entry.answer and entry.evidence:
        words = _words(entry.answer)
        held = (len(words & _words(one.text)) >= _HELD * len(words) for one in entry.evidence)
        return NOT_READ if any(held) else NOT_FOUND
    return entry.failure


def count_classes(entries: Iterable[CatalogueEntry]) -> Counter[str]:
    """Entries by class; those without one are left out."""
    return Counter(name for entry in entries if (name := class_of(entry)))


def _words(text: str) -> set[str]:
    words = re.findall(r"\w+", text.casefold())
    return {word for word in words if len(word) > 3 or word.isdigit()} or set(words)
