"""Holds a sentence that may answer, with what stands above it, and tells how it can stand alone."""

import re
from dataclasses import dataclass

from kraq_dspy.embedded.short_answers.short import BRACKETED

NAME_OF_FILE = re.compile(
    r"_|^(?:README|NEWS|CHANGES|CHANGELOG|LICENSE|COPYING|AUTHORS|INSTALL|CONTRIBUTING|TODO|INDEX)$", re.IGNORECASE
)
POINTS_BACK = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|The [a-z]+)\b")
"""How a sentence begins that is about what its passage's title names."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence, the title of its passage, and how near it is to the question.

    `above` is what it goes on from: its heading, and the sentence before one that begins with "it" or "the".
    """

    text: str
    title: str
    passage: int
    score: float
    above: str = ""


def context_of(part: Evidence) -> str:
    """What stands above a sentence: the title of its passage, and what it goes on from."""
    return f"{part.title}\n{part.above}"


def alone(part: Evidence) -> str:
    """The sentence so that it can stand alone: behind the title of its passage where it says "he" or "it" for that."""
    hides = POINTS_BACK.match(part.text) and is_subject(part.title) and BRACKETED.sub("", part.title) not in part.text
    return f"{part.title}: {part.text}" if hides else part.text


def is_subject(title: str) -> bool:
    """Whether a title may name what its text is about. A text without a title has its file's name.
    That says nothing about it if it is in lower case, has marks of a file's name, or is common in
    any project.

    >>> [is_subject(title) for title in ("Don Juan", "1920 (film)", "notes-2024", "utf16", "Plan_B", "README")]
    [True, True, False, False, False, False]
    """
    title = BRACKETED.sub("", title)
    is_small = any(letter.islower() for letter in title) and not any(letter.isupper() for letter in title)
    return bool(title) and not is_small and not NAME_OF_FILE.search(title)
