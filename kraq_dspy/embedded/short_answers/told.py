"""Tells whether a text answers a question at all: whether it has the words without which nothing answers it.

A question of one step that has few words is answered by one sentence, which has to have them; a longer one may be
answered by several. "When does the spring term end?" is not answered where nothing ends, nor by a term that begins.
"""

import re
from collections.abc import Sequence

from rapidfuzz.distance import DamerauLevenshtein

from kraq_dspy.embedded.short_answers.meaning import Keys, is_in, vocabulary_of
from kraq_dspy.embedded.short_answers.question import Asked
from kraq_dspy.embedded.short_answers.sense import sense_of
from kraq_dspy.embedded.short_answers.values import values_in

NOWHERE, NOWHERE_AT_MOST = 0.25, 0.5
"""Share of a question's words that no passage has, from which on it is not answered. The larger one is that of
questions of two steps, and of those that want a yes or a no: "closed" answers where "open" is asked."""
TOGETHER = 3
"""A question of one step with as many words or fewer has all of them in one sentence."""
LONG_ENOUGH = 6
"""Letters of a word that may be misspelled."""
_STANDS_FOR = re.compile(r"(?<=[a-z] )(?:it|them)\b(?=[.,;]|$| (?:in|on|at|by|for|from|with|to|until|and|off|up)\b)")
"""What may stand for the word of a question that a sentence lacks: "He won it in 1932." """
_HAS_AMOUNT = re.compile(
    r"\d|[½¼¾]|\b(?:no|none|nothing|nobody|free|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty"
    r"|thirty|forty|fifty|hundreds?|thousands?|millions?|billions?|half|several|few|many|all|single|both|once|twice"
    r")\b",
    re.IGNORECASE,
)
"""What a sentence has that tells how much or how many."""
_IS_NONE = re.compile(r"\b(?:no|none|nothing|free|half)\b|[½¼¾]", re.IGNORECASE)
_HAVE_NO_AMOUNT = frozenset(("person", "place", "date", "year", "clock"))


def is_told(asked: Asked, sentences: Sequence[tuple[str, str]], passages: Sequence[str]) -> bool:
    """Whether the passages may answer. `sentences` are the nearest, each with what stands above it."""
    everywhere = frozenset().union(*map(vocabulary_of, passages), *(sense_of(text) for text, _ in sentences))
    needed = [word.keys for word in asked.words if not _is_misspelled(word.keys, everywhere)]
    if not needed:
        return True

    least = len(needed) if asked.is_plain and len(needed) <= TOGETHER else 0
    shared = [(_shared(needed, text, above), text) for text, above in sentences]
    if any(0 < count == len(needed) - 1 and _STANDS_FOR.search(text) for count, text in shared):
        least = max(0, least - 1)
    else:
        n_missing = sum(not is_in(key, everywhere) for key in needed)
        if n_missing >= _most_missing(asked) * len(needed):
            return n_missing == 0
    return asked.is_closed or _tells(asked, [text for count, text in shared if count >= least])


def _most_missing(asked: Asked) -> float:
    """The share of its words that no passage has, from which on a question is not answered."""
    return NOWHERE if asked.is_plain and not asked.is_closed else NOWHERE_AT_MOST


def _is_misspelled(word: Keys, everywhere: Keys) -> bool:
    """Whether a long word of the question that no text has is but for a letter one of them: "ctenohore"."""
    return not is_in(word, everywhere) and any(
        DamerauLevenshtein.distance(own, other, score_cutoff=1) <= 1
        for own in word
        if len(own) >= LONG_ENOUGH and own.isalpha()
        for other in everywhere
        if other[:2] == own[:2] and other.isalpha()
    )


def _tells(asked: Asked, texts: Sequence[str]) -> bool:
    """Whether there is a text, and an amount in one where the question asks for it."""
    if asked.kinds and _HAVE_NO_AMOUNT.isdisjoint(asked.kinds):
        return any(_tells_amount(asked, text) for text in texts)
    return bool(texts)


def _tells_amount(asked: Asked, text: str) -> bool:
    """Whether a text tells how many, or has a value of the asked kinds, a bare number, or says that there is none."""
    if "number" in asked.kinds:
        return _HAS_AMOUNT.search(text) is not None
    kinds = {value.kind for value in values_in(f"{text[:1].lower()}{text[1:]}")}
    return not kinds.isdisjoint((*asked.kinds, "number")) or _IS_NONE.search(text) is not None


def _shared(needed: Sequence[Keys], text: str, above: str) -> int:
    own = sense_of(text) | vocabulary_of(above)
    return sum(is_in(key, own) for key in needed)
