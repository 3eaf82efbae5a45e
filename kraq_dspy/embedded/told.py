"""Tells whether passages answer a question at all: whether they have the words without which nothing answers it.

A question of few words is answered by one sentence, which has to have them; a longer one may be answered by several.
"When does the spring term end?" is not answered where nothing ends, nor by a term that begins.
"""

import re
from collections.abc import Sequence

from rapidfuzz.distance import DamerauLevenshtein

from kraq_dspy.embedded.meaning import Keys, is_in, vocabulary_of
from kraq_dspy.embedded.value import CLOSED, needed_words

NOWHERE, NOWHERE_AT_MOST = 0.25, 0.5
"""Share of a question's words that no passage has, from which on it is not answered. The larger one is that of
questions with a clause, and of those that want a yes or a no: "closed" answers where "open" is asked."""
TOGETHER = 3
"""A question with as many words or fewer has all of them in one sentence."""
LONG_ENOUGH = 6
"""Letters of a word that may be misspelled."""
_STANDS_FOR = re.compile(r"(?<=[a-z] )(?:it|them)\b(?=[.,;]|$| (?:in|on|at|by|for|from|with|to|until|and)\b)")
"""What may stand for the word of a question that a sentence lacks."""
_TWO_STEPS = re.compile(r"\b(?:that|which|who|whose|where)\b.*\b(?:that|which|who|whose|where)\b|,", re.IGNORECASE)
_LENGTH = r"\d ?(?:k?m|cm|mm|kilomet\w+|met(?:re|er)s?|centimet\w+|miles?|feet|ft|inch\w*)\b"
_TIME = r"\b(?:seconds?|minutes?|hours?|nights?|days?|weeks?|months?|years?|decades?|centur\w+)\b"
_AMOUNTS = tuple(
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), re.compile(told, re.IGNORECASE))
    for asked, told in (
        (r"how (?:wide|high|tall|deep|far|thick)", _LENGTH),
        (r"how long", rf"{_LENGTH}|{_TIME}|\d{{4}}|\d:\d\d"),
        (r"how old do(?:es)?", rf"{_TIME}|\bage\b"),
        (r"how old", rf"{_TIME}|\d{{4}}|\bage\b"),
        (
            r"how (?:large|big)",
            r"\d ?(?:[kKMG]B|[km]m?[²2]|square|hectares?|acres?|people|inhabitants)\b"
            r"|\b(?!(?:1\d|20)\d\d\b)\d[\d,]{3,}\b(?! (?:pounds|euros|dollars|crowns)\b)",
        ),
        (r"weighs?|how heavy", r"\d ?(?:k?g|mg|t|tonn?es?|tons?|lbs?|pounds?|ounces?|kilos?|gram\w*)\b"),
        (
            r"costs?|price|fee",
            r"[$€£¥]|\b(?:EUR|USD|GBP|CHF|SEK|DKK|NOK)\b|\b(?:euros?|crowns?|pounds?|dollars?|francs?|kr|cents?|pence|free|nothing)\b",
        ),
        (
            r"how (?:many|much)",
            r"\d|[½¼¾]|\b(?:no|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|half"
            r"|hundreds?|thousands?|millions?|billions?|several|few|many|all|both|once|twice)\b",
        ),
    )
)
"""How an amount is asked for, and what a sentence has that tells it: the first that fits a question counts."""


def telling(question: str, sentences: Sequence[tuple[str, str]], passages: Sequence[str]) -> list[int] | None:
    """The places of the sentences that may answer, in order; None if the passages do not answer.

    `sentences` are the nearest, each with what stands above it.
    """
    everywhere = frozenset().union(*map(vocabulary_of, passages))
    needed = [keys for keys in needed_words(question) if not _is_misspelled(keys, everywhere)]
    if not needed:
        return []

    is_closed = CLOSED.match(question) is not None
    n_missing = sum(not is_in(keys, everywhere) for keys in needed)
    most = NOWHERE_AT_MOST if is_closed or _TWO_STEPS.search(question) else NOWHERE
    if n_missing > most * len(needed):
        return None

    least = len(needed) if len(needed) <= TOGETHER else 0
    places = [place for place, (text, above) in enumerate(sentences) if _shared(needed, text, above) >= least]
    amount = next((told for asked, told in _AMOUNTS if asked.search(question)), None)
    if amount is not None and not is_closed:
        places = [place for place in places if amount.search(sentences[place][0])]
    return places if places or is_closed else None


def _is_misspelled(word: Keys, everywhere: Keys) -> bool:
    """Whether a long word of the question that no text has is but for a letter one of them: "ctenohore"."""
    return not is_in(word, everywhere) and any(
        DamerauLevenshtein.distance(own, other, score_cutoff=1) <= 1
        for own in word
        if len(own) >= LONG_ENOUGH and own.isalpha()
        for other in everywhere
        if other[:2] == own[:2] and other.isalpha()
    )


def _shared(needed: Sequence[Keys], text: str, above: str) -> int:
    """How many of the words a sentence has, and one more if a pronoun may stand for it."""
    own = vocabulary_of(text) | vocabulary_of(above)
    count = sum(is_in(keys, own) for keys in needed)
    return count + (count == len(needed) - 1 > 0 and _STANDS_FOR.search(text) is not None)
