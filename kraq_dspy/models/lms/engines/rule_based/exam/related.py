"""Finds the sentences that tell of two names, and asks how the two are related."""

import re
from collections.abc import Collection, Sequence

from kraq_dspy.language.text import parted, sentences
from kraq_dspy.models.lms.engines.rule_based.judge import same_thing

MOST_ABOUT = 6
"""Names of which pairs are looked at."""


def related_question(names: Sequence[str]) -> str:
    return f"How is {names[0]} related to {names[1]}?"


def sentence_about(passage: str, names: Collection[str]) -> str:
    """Return the first sentence that has all of the names, where the title counts for what a
    sentence leaves out; "" for none.

    >>> sentence_about("Ada Lovelace\\nShe was a poet's child. She met Charles Babbage.", ["Ada Lovelace", "Babbage"])
    'She met Charles Babbage.'
    """
    title, body = parted(passage)
    for sentence in sentences(body):
        named = f"{title} {sentence}"
        if all(name in named for name in names) and any(name in sentence for name in names):
            return sentence
    return ""


def are_two_things(name: str, other: str) -> bool:
    """Tell whether the names are of two things, not a long and a short name of one: "United States" and "U.S."."""
    letters, of_other = (re.sub(r"[^\w ]", "", each) for each in (name, other))
    return not (name in other or other in name or same_thing(letters, of_other))
