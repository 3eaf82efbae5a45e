"""Tells names from words and from measures, and whole names from parts, by how texts write them.

"Steam" is a name where the texts seldom write "steam", and "Prevention" is a word that began a sentence. "HIV" is a
name; "CI" and "UTC" are not, since numbers stand beside them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

OFTEN_SMALL = 1 / 3  # of a word's places with a capital, from which on it is no name
BESIDE_NUMBERS = 0.3  # share of an acronym's places, from which on it is a measure
TOGETHER = (
    0.5  # share of the places of the rarer of two words in which "and" joins them, from which on they are one name
)
MOSTLY = 3  # times as often

_TOKEN = re.compile(r"\w+(?:[’'.\-&]\w+)*|&")
_NUMBER = re.compile(r"\d.*|[ap]\.?m", re.IGNORECASE)
_OWNER = ("'s", "’s")
_JOINTS = ("and", "&")


class Spellings:
    """How words are written in some texts, counted once for all names that are asked about.

    >>> texts = ["Steam sells games. Steam lets off steam at 9 UTC.", "Steam, at 8 UTC. Steam opens. Members: members."]
    >>> spellings = Spellings(texts)
    >>> spellings.is_word("Steam"), spellings.is_word("Members")
    (False, True)
    >>> spellings.is_measure("UTC"), spellings.is_measure("Steam")
    (True, False)
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()  # of an owner and what follows
        self._joined: Counter[tuple[str, str, str]] = Counter()  # of a word, "and", and a word
        self._beside_numbers: Counter[str] = Counter()
        for text in texts:
            tokens = _TOKEN.findall(text)
            self._counts.update(tokens)
            self._pairs.update(pair for pair in pairwise(tokens) if pair[0].endswith(_OWNER))
            triples = zip(tokens, tokens[1:], tokens[2:], strict=False)
            self._joined.update(triple for triple in triples if triple[1] in _JOINTS)
            self._beside_numbers.update(_beside_numbers(tokens))

    def is_word(self, name: str) -> bool:
        """Whether the texts often write a name of one word with small letters: it, or a form of it."""
        if name.islower():
            return False
        small = sum(self._counts[form] for form in _forms(name.lower()))
        return small > 0 and small >= OFTEN_SMALL * self._counts[name]

    def is_measure(self, name: str) -> bool:
        """Whether numbers stand beside an acronym, as beside "CI" of "95 % CI" and "UTC" of "9 UTC"."""
        return self._beside_numbers[name] > BESIDE_NUMBERS * self._counts[name]

    def is_owned(self, name: str) -> bool:
        """Whether "Valve's Steam" is Steam: the texts mostly name it without its owner, as they do not "Garry's Mod".

        >>> Spellings(["Valve's Steam grew. Steam sells games. We use Steam. Steam is old."]).is_owned("Valve's Steam")
        True
        """
        owner, _, thing = name.partition(" ")
        return owner.endswith(_OWNER) and self._counts[thing] > MOSTLY * self._pairs[owner, thing]

    def joined(self, first: str, second: str) -> str:
        """Return the name that two make with an "and" between them; "" if they mostly stand apart.

        >>> spellings = Spellings(["The US Food and Drug Administration approved it; the Drug Administration did."])
        >>> spellings.joined("US Food", "Drug Administration")
        'US Food and Drug Administration'
        """
        before, after = first.split()[-1], second.split()[0]
        if (before, after) == (first, second):  # two teams or countries
            return ""

        rarer = min(self._counts[before], self._counts[after])
        for joint in _JOINTS:
            if 0 < TOGETHER * rarer <= self._joined[before, joint, after]:
                return f"{first} {joint} {second}"
        return ""


def _forms(word: str) -> set[str]:
    """The word, its singular or plural, and its forms as an English verb.

    >>> sorted(_forms("approve"))
    ['approve', 'approved', 'approves', 'approving']
    """
    if word.endswith("s"):
        return {word, word[:-1]}
    if word.endswith("e"):
        return {word, f"{word}s", f"{word}d", f"{word[:-1]}ing"}
    return {word, f"{word}s", f"{word}ed", f"{word}ing"}


def _beside_numbers(tokens: list[str]) -> Iterator[str]:
    """Yield each acronym that a number stands before or after, once for each of its places."""
    counted = -1
    for place, (first, second) in enumerate(pairwise(tokens)):
        if second.isupper() and _NUMBER.fullmatch(first):
            counted = place + 1
            yield second
        if first.isupper() and counted != place and _NUMBER.fullmatch(second):
            yield first
