"""Reads transcripts: whose turn a sentence is of, and what is asked of who speaks."""

import re
from collections.abc import Collection, Sequence

from kraq_dspy.embedded.reading.vocabulary import FIGURES, VAGUE
from kraq_dspy.language.analysis import Asked, Named
from kraq_dspy.language.vocabulary import GENERAL, PEOPLE

SPOKEN = range(9, 26)  # words of a sentence that is an answer as a whole
_WEIGHT = 0.5
_HESITATES = re.compile(
    r"\b(?:u[hm]|mm|hmm|yeah|okay|well|you know|i mean|i guess|so|like)\b|[:\"“”|]|\b(\w+),? \1\b|\b(\w{1,3}) \2\w"
    r"|\b(\w{1,12} ?['’]\w{1,4}) \3\b|[a-z]\.[A-Z]|[—–-]\W*$",
    re.IGNORECASE,
)
_OF_THE_TALK = re.compile(
    r"^(?:it|they|that|this|these|those|he|she|let|also|because|which|currently|again|as)\b"
    r"|^(?:and|but|or) (?:it|they|that|this)\b"
    r"|\b(?:questions?|move on|go on|going on|turn to|come back|petitions?|thank|let me|agenda|sorry|hand over)\b",
    re.IGNORECASE,
)
"""What points to the turn before, or leads the meeting and tells nothing."""
MATTERS = ("tion", "sion", "ment", "ance", "ence", "ity", "care", "work", "health", "ing", "cy")
"""Ends of words for what has no number: "adult education"."""
_ODD = re.compile(r"[^\w\s'’-]|_|\b(?:percent|per cent)\b")


def turns_of(labels: Sequence[str], people: Collection[str]) -> list[str]:
    """Who speaks each part of a transcript, by the labels before the parts; "" for nobody, and for one plain word.

    What somebody does has an article.

    >>> turns_of(["Ada Lovelace", "", "Note", "Project Manager"], {"Ada Lovelace", "Project Manager"})
    ['Ada Lovelace', 'Ada Lovelace', '', 'the Project Manager']
    """
    turns, speaks = [], ""
    for label in labels:
        if label:
            speaks = _speaker(label) if label in people else ""
        turns.append(speaks)
    return turns


def asked_of_turn(text: str, named: Sequence[Named], turn: str) -> list[Asked]:
    """What somebody said about the thing that a sentence of a turn tells of most particularly; the sentence answers.

    `named` are what the sentence tells of.

    >>> named = [Named("childcare offer", "phrase", "offer")]
    >>> said = "The childcare offer will reach every family in Wales by the end."
    >>> [asked.question for asked in asked_of_turn(said, named, "Ada Lovelace")]
    ['What did Ada Lovelace say about the childcare offer?']
    """
    is_whole = text[:1].isupper() and text.endswith(".") and len(text.split()) in SPOKEN
    if not turn or not is_whole or _HESITATES.search(text) or _OF_THE_TALK.search(text):
        return []
    topics = [each for each in named if _is_topic(each, turn) and _is_one_told_of(each, text)]
    topic = max(topics, key=lambda each: len(each.text.split()), default=None)  # the first of the longest
    if topic is None:
        return []
    is_one = topic.is_phrase and topic.text.casefold().endswith(topic.head)
    is_led = re.search(rf"\b(?:the|{'our|my' if is_one else 'the'}) {re.escape(topic.text)}\b", text, re.IGNORECASE)
    spoken = f"the {topic.text}" if is_led else topic.text
    return [Asked(f"What did {turn} say about {spoken}?", text.rstrip("."), "what", _WEIGHT, (topic.text,))]


def _is_topic(named: Named, turn: str) -> bool:
    """Whether somebody may be asked what was said about it: two words or more, or a name of no person."""
    first = named.text.split()[0].casefold()
    if _ODD.search(named.text) or first in GENERAL or named.kind in ("person", "group") or named.text in turn:
        return False
    is_long = " " in named.text and named.head not in VAGUE and named.head not in FIGURES
    return is_long or (not named.is_phrase and named.kind != "concept" and len(named.text) > 2)


def _is_one_told_of(named: Named, text: str) -> bool:
    """Whether the sentence speaks of one that is known: of "the" thing, of several, of a matter without an article."""
    led = re.search(rf"\b(?P<article>the|our|my|an?) {re.escape(named.text)}\b", text, re.IGNORECASE)
    if led is not None:
        return led["article"].lower() not in ("a", "an")
    is_several = named.text.casefold().split()[-1] != named.head
    return not named.is_phrase or is_several or named.head.endswith(MATTERS)


def _speaker(name: str) -> str:
    is_name = 1 < len(name.split()) <= 5 and all(word[0].isupper() for word in name.split())
    if not is_name:
        return ""
    last = name.split()[-1].casefold()
    is_role = last in FIGURES or last in PEOPLE or last.endswith(("er", "chair", "expert"))
    return f"the {name.removeprefix('The ')}" if is_role else name
