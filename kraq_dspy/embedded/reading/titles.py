"""Reads titles: whose site it is that says "we", and which tale it is that tells of a king."""

import re
from collections.abc import Sequence

LONGEST_NAME = 6  # words of a title that is a name
_BRACKETED = re.compile(r" \([^()]*\)$")
_SITE = re.compile(r"[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|io|co|uk|info|tv|us)")

_OF_BOTH = re.compile(r"\b(?:we|our|us|you|your)\b", re.IGNORECASE)


def speaker_of(title: str) -> str:
    """Who "we" are in a document: the site that its title names; "" if it names none.

    >>> speaker_of("harrow-news.com"), speaker_of("Harrow News")
    ('harrow-news.com', '')
    """
    return title if _SITE.fullmatch(title) else ""


def says_to_reader(sentence: str) -> bool:
    """Whether a site speaks of itself or to its reader: "We keep your address."."""
    return _OF_BOTH.search(sentence) is not None


def tale_of(title: str, parts: Sequence[str]) -> str:
    """The title of a text all in small letters, which tells of figures; "" of any other.

    >>> tale_of("the fox and the geese", ["the fox came to a meadow ."])
    'the fox and the geese'
    """
    is_short = 0 < len(title.split()) <= 8 and not re.search(r"[\d“”\"]", title)
    is_in_small = title.islower() and all(part == part.lower() for part in parts[:10])  # a part may be a mark alone
    return title if is_short and is_in_small else ""


def meant_by_pronouns(title: str, parts: Sequence[str]) -> list[str]:
    """What "He", "She" or "It" at the beginning of each sentence is: the title, as long as each sentence before begins
    with it or with such a pronoun; "" for nothing.

    >>> meant_by_pronouns("Ada", ["Ada was a poet's child.", "She met Charles.", "Charles built.", "He left."])
    ['', 'Ada', '', '']
    """
    name = _BRACKETED.sub("", title)
    is_name = name[:1].isupper() and len(name.split()) <= LONGEST_NAME and not speaker_of(title)
    meant, is_spoken_of = [], False
    for part in parts:
        points = part.split(" ", 1)[0] in ("He", "She", "It")
        meant.append(name if points and is_spoken_of else "")
        is_spoken_of = is_name and (part.removeprefix("The ").startswith(name) or (points and is_spoken_of))
    return meant
