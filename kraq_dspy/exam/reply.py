"""Takes the question and its answers out of what a model replied."""

import re
from collections.abc import Sequence
from typing import Any

from kraq_dspy.programs.kraq.question_text import MARKS, question_in

_QUESTION_WORD = re.compile(r"(?:who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)


def question_of(reply: Any) -> str:
    """The question of a reply, without what a model says around it."""
    return with_mark(question_in(reply.question or ""))


def answers_in(reply: Any) -> list[str]:
    """The answer, the items of a list, or the nuggets of a broad question."""
    given: str | Sequence[str] = next((reply[name] for name in ("answer", "items", "nuggets") if reply.get(name)), [])
    texts = [given] if isinstance(given, str) else list(given)
    return list(dict.fromkeys(text.strip().rstrip(".") for text in texts if text and text.strip(" .")))


def with_mark(question: str) -> str:
    """The question with the mark and the capital that small models leave out.

    >>> with_mark('who wrote "Night'), with_mark("It was written in 1956.")
    ('Who wrote "Night"?', 'It was written in 1956.')
    """
    if not _QUESTION_WORD.match(question) or question.endswith((*MARKS, ".", "!")):
        return question
    closed = f'{question}"' if question.count('"') % 2 else question
    return f"{closed[0].upper()}{closed[1:]}?"
