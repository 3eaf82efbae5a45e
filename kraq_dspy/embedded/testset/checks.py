"""Checks by words whether a passage answers a question, and whether two answers say the same."""

import re

from kraq_dspy.embedded.judge import agreement, support
from kraq_dspy.language.text import content_words, parted, sentences


def is_answered(question: str, answer: str, passage: str) -> bool:
    """Whether the passage has the answer, and one of its sentences most of what the question says beside it."""
    title, body = parted(passage)
    if not answer or not set(_words(answer)) <= set(_words(passage)):
        return False
    beyond_the_answer = " ".join(word for word in content_words(question) if word not in content_words(answer))
    if not beyond_the_answer:
        return True
    supports = (support(beyond_the_answer, f"{title} {part}") for part in sentences(body))
    return max(supports, default=0.0) >= 0.6


def says_what_it_is_about(question: str) -> bool:
    """Whether two words of the question tell something, or one that is a name.

    >>> says_what_it_is_about("What is Peresolimab?"), says_what_it_is_about("Where is the film?")
    (True, False)
    """
    is_named = any(word[0].isupper() or word[0].isdigit() for word in re.findall(r"\w+", question)[1:])
    telling = set(content_words(question))
    return len(telling) >= 2 or bool(telling and is_named)


def says_the_same(first: str, second: str) -> bool:
    """Whether two answers share most of their words."""
    return agreement(first, [second]) >= 0.6


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
