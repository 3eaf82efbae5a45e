"""Measures how much of what supports the answers is in the passages that a system retrieves.

A fact counts as found when at least half of its word 5-grams are in the passages, the rule by which the data set says
which piece holds which fact. Passages are read in the order in which they came, up to a number of tokens, so that
systems with chunks of different sizes compare.
"""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from peers.corpus import Asked

from kraq_dspy.asset.corpus.tokens import count_tokens, truncate_tokens

BUDGETS = (500, 1000, 2000, 4000)
GRAM = 5


def holds(text: str, fact: str) -> bool:
    """Whether at least half of the fact's 5-grams are in the text; of a shorter fact, whether all of it is."""
    size = min(GRAM, len(_words(fact)))
    grams = _grams(fact, size)
    return 2 * len(grams & _grams(text, size)) >= len(grams)


def recall_within(passages: Sequence[str], facts: Sequence[str], tokens: int | None) -> float:
    """Share of the facts in the first `tokens` of the passages; None: in all of them. A fact in two halves of two
    passages is in neither."""
    within = list(first_tokens(passages, tokens)) if tokens is not None else passages
    return sum(any(holds(text, fact) for text in within) for fact in facts) / len(facts)


def first_tokens(passages: Sequence[str], tokens: int) -> Iterator[str]:
    """The passages up to that many tokens in all; the last is cut."""
    for text in passages:
        if tokens <= 0:
            return
        yield truncate_tokens(text, tokens)
        tokens -= count_tokens(text)


def measure(retrieved: Sequence[Mapping[str, Any]], questions: Sequence[Asked]) -> dict[str, Any]:
    """Recall of each question by budget, and in all that was retrieved (None); means of what that was. `ms` is the
    median. Raises KeyError where a question was not asked."""
    by_id = {row["question"]: row for row in retrieved}
    passages_by_question = [by_id[question.id]["passages"] for question in questions]
    pairs = list(zip(passages_by_question, questions, strict=True))
    return {
        "recall": {
            budget: [recall_within(passages, question.facts, budget) for passages, question in pairs]
            for budget in (*BUDGETS, None)
        },
        "tokens": statistics.mean(sum(map(count_tokens, passages)) for passages in passages_by_question),
        "ms": statistics.median(by_id[question.id]["seconds"] for question in questions) * 1000,
    }


@lru_cache(maxsize=20_000)
def _grams(text: str, size: int) -> frozenset[tuple[str, ...]]:
    words = _words(text)
    return frozenset(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
