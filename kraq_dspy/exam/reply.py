"""Takes the question and its answers out of what a model replied."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.programs.kraq.question_text import question_in, with_mark


def question_of(reply: Any) -> str:
    """The question of a reply, without what a model says around it."""
    return with_mark(question_in(reply.question or ""))


def answers_in(reply: Any) -> list[str]:
    """The answer, the items of a list, or the nuggets of a broad question."""
    given: str | Sequence[str] = next((reply[name] for name in ("answer", "items", "nuggets") if reply.get(name)), [])
    texts = [given] if isinstance(given, str) else list(given)
    return list(dict.fromkeys(text.strip().rstrip(".") for text in texts if text and text.strip(" .")))
