"""Tells whom the pronouns mean with which sentences of a passage begin, where its title does."""

import re
from collections.abc import Sequence

LONGEST_NAME = 6  # words of a title that is a name
_BRACKETED = re.compile(r" \([^()]*\)$")


def meant_by_pronouns(title: str, parts: Sequence[str]) -> list[str]:
    """What "He", "She" or "It" at the beginning of each sentence is: the title, as long as each sentence before begins
    with it or with such a pronoun; "" for nothing.

    >>> meant_by_pronouns("Ada", ["Ada was a poet's child.", "She met Charles.", "Charles built.", "He left."])
    ['', 'Ada', '', '']
    """
    name = _BRACKETED.sub("", title)
    is_name = name[:1].isupper() and len(name.split()) <= LONGEST_NAME
    meant, is_spoken_of = [], False
    for part in parts:
        points = part.split(" ", 1)[0] in ("He", "She", "It")
        meant.append(name if points and is_spoken_of else "")
        is_spoken_of = is_name and (part.removeprefix("The ").startswith(name) or (points and is_spoken_of))
    return meant
