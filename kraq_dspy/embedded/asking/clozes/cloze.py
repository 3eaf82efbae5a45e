"""Holds what all languages' rules share: a question with the part of a statement that answers it, and its words."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
FIRST_NAMES = frozenset(WORDS["first_names"].split())
YEAR = r"(?:1[0-9]|20)\d\d"
"""Years from 1000 to 2099."""
IN_BRACKETS = re.compile(r"\s?\([^()]{0,120}\)|\s?\[[^\[\]]{0,120}\]")
DEFINITION = range(4, 16)
"""Words that German and French say of what they define."""


@dataclass(frozen=True, slots=True)
class Cloze:
    """A question that a statement answers, and the answer in the statement's words.

    `word` is "when", "who", "what", "where" or "how many".
    """

    question: str
    answer: str
    word: str


def words_of(language: str, name: str) -> frozenset[str]:
    """A list of words of a language, as a set."""
    return _words_of(language, name)


@lru_cache(maxsize=64)
def _words_of(language: str, name: str) -> frozenset[str]:
    return frozenset(WORDS[language][name].split())


def any_of(words: Iterable[str]) -> str:
    """A pattern of any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def is_person(words: list[str]) -> bool:
    """Whether words are the whole name of a person: a first name, and up to three words with capitals or a small "von".

    >>> is_person(["Martin", "Luther"]), is_person(["Martin"]), is_person(["Super", "Bowl"])
    (True, False, False)
    """
    if not 2 <= len(words) <= 4 or words[0] not in FIRST_NAMES:
        return False
    return all(word[:1].isupper() or word in _PARTICLES for word in words) and words[-1][:1].isupper()


_PARTICLES = frozenset(("von", "van", "de", "der", "du", "la", "le", "zu", "d’", "d'"))


def joined(*parts: str) -> str:
    """The parts as one text with single spaces, and none before a mark."""
    text = re.sub(r"\s+", " ", " ".join(part for part in parts if part)).strip()
    return re.sub(r" (?=[,.;:])", "", text)


def without(part: re.Match[str], *, start: int | None = None) -> str:
    """The text in which the part was found, without it; `start` is where more before it goes, too.

    A comma that stood before a part at the end goes with it.

    >>> without(re.search("in Ulm$", "lebte in Ulmenau, in Ulm"))
    'lebte in Ulmenau'
    """
    before = part.string[: part.start() if start is None else start]
    return joined(before, part.string[part.end() :]).removesuffix(",")


def has_another_year(text: str, date: str) -> bool:
    """Whether the text names a year outside of this date, so that "when" has two answers.

    >>> has_another_year("Der Hafen von 1904 brannte 1931 ab", "1931")
    True
    """
    return re.search(rf"\b{YEAR}\b", text.replace(date, " ", 1)) is not None


def with_question_word(statement: str, answer: re.Match[str], word: str) -> str:
    """The statement with the word that asks in the place of the answer, as Chinese and Japanese ask."""
    return f"{statement[: answer.start()]}{word}{statement[answer.end() :]}"
