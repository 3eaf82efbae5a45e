"""Gives the words that a sentence says, with those that its values say: "4.2 kg" says that it weighs."""

import re
from functools import lru_cache

from kraq_dspy.embedded.short_answers.meaning import Keys, Word, keys_of, vocabulary_of, words_of
from kraq_dspy.embedded.short_answers.values import values_in

_IMPLIED = {
    "mass": "weigh weight heavy", "temperature": "temperature hot cold warm", "power": "power electricity consume",
    "speed": "fast speed", "money": "cost price pay charge", "length": "long length far distance",
    "duration": "long time",
    "sound": "loud", "area": "large area size", "date": "date day", "clock": "time", "percent": "percentage share",
}  # fmt: skip
_OF_LENGTH = "wide width high height tall deep depth thick thickness broad"
"""What a length is of, where the sentence does not say it."""
_SAY_OF_LENGTH = frozenset((*_OF_LENGTH.split(), "long", "length", "distance", "diameter"))


_SWITCHED = re.compile(
    r"\boff\b|(?<=ed )on\b|(?<=switch )on\b|(?<=turn )on\b|(?<=put )on\b|\bon(?=\s*(?:$|[,.;]))", re.IGNORECASE
)
"""What is done to lamps and machines."""


@lru_cache(maxsize=1024)
def sense_of(sentence: str) -> Keys:
    """The keys of its words and of what its values imply, together."""
    keys = set(vocabulary_of(sentence))
    said = {word.text.lower() for word in words_of(sentence)}
    for kind in {value.kind for value in values_in(sentence)}:
        implied = _IMPLIED.get(kind, "")
        if kind == "length" and said.isdisjoint(_SAY_OF_LENGTH):
            implied = f"{implied} {_OF_LENGTH}"
        keys.update(*map(keys_of, implied.split()))
    keys.update(*(word.keys for word in switched_in(sentence)))
    return frozenset(keys)


def switched_in(sentence: str) -> list[Word]:
    """ "on" and "off" where they are what is done: "switched off at 17:00"."""
    return [
        Word(match[0], frozenset((f"switched {match[0].lower()}",)), match.start(), match.end())
        for match in _SWITCHED.finditer(sentence)
    ]
