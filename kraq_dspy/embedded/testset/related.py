"""Finds the sentences that tell of two names, and asks what connects the two."""

import re
from collections.abc import Collection

from kraq_dspy.embedded.asking.templates import without_asides
from kraq_dspy.embedded.judge import same_thing
from kraq_dspy.embedded.names import REFERENCE
from kraq_dspy.embedded.testset.statements import VERB, is_somebody
from kraq_dspy.embedded.testset.whole_names import stands_whole
from kraq_dspy.language.text import parted, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.language.vocabulary import STOP

_LONGEST = 45  # words of a sentence that a person would read as an answer
_BEGINS = re.compile(r"[-*>•`\"“'‘(\[\s]*(?P<word>\w+)")
_ENDS = re.compile(r"[.!?…][\"”’')]*$")
_VERB = re.compile(rf"\b(?:{VERB}|[a-z]{{3,}}s)\b")
_FEWEST_OF_A_LIST = 10  # words
_PATH = re.compile(r"(?:\b[A-Z][\w-]* ){6}")
_LABELLED = re.compile(r"[^.,]{1,40} ?: ")
"""What menus have, and what explains a word of a list: "Settings Sound Output ...", "Sync: Adjusts ..."."""
_LISTED = 0.7
"""Share of words with capitals or digits from which on a line is a table's or a list's."""


def sentence_about(passage: str, names: Collection[str]) -> str:
    """Return the first whole sentence that has all of the names, where the title counts for what a
    sentence leaves out; "" for none.

    A name in brackets, or one that is a piece of a longer one, is not what the sentence tells of.

    >>> passage = "Ada Lovelace\\nShe was a poet's child. She met Charles Babbage."
    >>> sentence_about(passage, ["Ada Lovelace", "Charles Babbage"])
    'She met Charles Babbage.'
    """
    title, body = parted(passage)
    if not all(name in passage for name in names):
        return ""
    for sentence in sentences(body):
        plain = without_asides(sentence)
        own = [name for name in names if stands_whole(name, plain)]
        is_about_all = own and all(name in own or stands_whole(name, title) for name in names)
        if is_about_all and (language_of(body) != "en" or is_sentence(plain)):
            return sentence
    return ""


def is_sentence(text: str) -> bool:
    """Whether an English text can be read by itself: whole, with a verb, no row of names.

    >>> is_sentence("She met Charles Babbage."), is_sentence("Original voice actor Animated debut Pacha John Goodman")
    (True, False)
    >>> is_sentence("- `kraq ask` calls the model of MiniLM."), is_sentence("and so does the model of MiniLM.")
    (True, False)
    """
    words = text.split()
    named = sum(not word.lstrip("\"“'‘(")[:1].islower() for word in words)
    is_listed = len(words) >= _FEWEST_OF_A_LIST and named >= _LISTED * len(words)
    begins = _BEGINS.match(text)
    goes_on = (
        begins is None or begins["word"] in STOP
    )  # small letters at the beginning of "kraq" or `top_k` are its own
    is_path = _PATH.search(text) is not None or _LABELLED.match(text) is not None
    is_whole = not (is_path or goes_on or "|" in text) and bool(_ENDS.search(text) and _VERB.search(text))
    return is_whole and not is_listed and len(words) <= _LONGEST and REFERENCE.search(text) is None


def are_two_things(name: str, other: str) -> bool:
    """Tell whether the names are of two things, not a long and a short name of one: "United States" and "U.S."."""
    letters, of_other = (re.sub(r"[^\w ]", "", each) for each in (name, other))
    return not (name in other or other in name or same_thing(letters, of_other))


def is_last_name(name: str, text: str) -> bool:
    """Tell whether a name is the last one of somebody whom the text names in full: no one knows which one is meant.

    >>> is_last_name("Babbage", "Ada met Charles Babbage. He spoke."), is_last_name("Rhine", "The Rhine is long.")
    (True, False)
    """
    return " " not in name and is_somebody(name, text)
