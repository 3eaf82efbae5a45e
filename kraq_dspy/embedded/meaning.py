"""Folds words to what they mean, so that "leaves", "left" and "departure" are one, and lists those that a question has.

The tables stand in `meaning.toml`. Two words are the same if they share a key.

>>> is_in(keys_of("paid"), keys_of("price")), is_in(keys_of("begins"), keys_of("end"))
(True, False)
"""

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kraq_dspy.language.text import WORD, stem
from kraq_dspy.language.vocabulary import STOP
from kraq_dspy.language.word_forms import base_of

_TABLE = tomllib.loads(Path(__file__).with_name("meaning.toml").read_text("utf-8"))
_IRREGULAR: dict[str, str] = dict(pair.split("/") for pair in _TABLE["irregular"].split())
_PREFIX = 5  # letters from which on a word that another begins with is the same: "install", "installer"
_LONGER, _LONGEST_ENDING = 3, 4
_LONG = 6
"""A word of so many letters may have a longer ending: "partner", "partnership"."""

Keys = frozenset[str]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text that carries meaning, by its keys and its place in characters."""

    text: str
    keys: Keys
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """The words in order but for small ones. A capital that stands alone is a name: "sample A".

    >>> [word.text for word in words_of("Sample A was not heavy.")]
    ['Sample', 'A', 'heavy']
    """
    found = []
    for match in WORD.finditer(text):
        own = re.sub(r"[’']s$", "", match[0])
        is_letter = len(own) == 1 and own.isupper() and match.start() > 0 and own != "I"
        if is_letter or own.lower() not in STOP:
            keys = frozenset((f"letter {own}",)) if is_letter else keys_of(own.lower())
            found.append(Word(match[0], keys, match.start(), match.end()))
    return found


@lru_cache(maxsize=1 << 15)
def keys_of(word: str) -> Keys:
    """What a word in small letters means: its stem, and the groups of words that mean the same."""
    own = _plain(word)
    return frozenset((own, *_groups().get(own, ())))


def _plain(word: str) -> str:
    """ "leav" of "leaves", "left" and "leaving"."""
    if len(word) > 4 and word.endswith("ies"):
        singular = f"{word[:-3]}y"
    else:
        singular = word[:-1] if len(word) > 3 and re.search(r"[^siu]s$", word) else word
    if word.startswith("re") and word[2:] in _IRREGULAR:
        return stem(f"re{_IRREGULAR[word[2:]]}")
    plain = _IRREGULAR.get(word) or _IRREGULAR.get(singular) or base_of(word) or singular
    return stem(plain)


@lru_cache(maxsize=1)
def _groups() -> dict[str, tuple[str, ...]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(_TABLE["same"].strip().splitlines()):
        for word in line.split():
            groups[_plain(word)].append(f"group {number}")
    return {word: tuple(numbers) for word, numbers in groups.items()}


LIGHT = frozenset(_plain(word) for word in _TABLE["light"].split())


def is_light(word: str) -> bool:
    """Whether a word in small letters only asks: "happen", "called", "need"."""
    return _plain(word) in LIGHT


def is_in(word: Keys, vocabulary: Keys) -> bool:
    """Whether a vocabulary, the keys of one word or of many, has the word, or one little longer or shorter that begins
    as it does."""
    if not word.isdisjoint(vocabulary):
        return True
    begun = {one[:_PREFIX]: one for one in word if len(one) >= _PREFIX and " " not in one}
    return any(
        other[:_PREFIX] in begun and " " not in other and _continues(begun[other[:_PREFIX]], other)
        for other in vocabulary
        if begun
    )


def _continues(one: str, other: str) -> bool:
    ending = _LONGEST_ENDING if min(len(one), len(other)) >= _LONG else _LONGER
    return abs(len(one) - len(other)) <= ending and (one.startswith(other) or other.startswith(one))


@lru_cache(maxsize=512)
def vocabulary_of(text: str) -> Keys:
    """The keys of all words of a text together."""
    return frozenset().union(*(word.keys for word in words_of(f"· {text}")))
