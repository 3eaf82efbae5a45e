"""Finds by rules questions that read alike and ask something else.

A rule speaks only if the two texts contradict each other; what one of them merely leaves out is for a model to
judge. Of stories with a question in them, only numbers and names are compared: in doctors' pairs, negations and
opposites stood as often between two that mean the same. Words are English; numbers and names are those of any language.
"""

import re
import unicodedata
from collections.abc import Iterable

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
SENTENCE_START = re.compile(r"(?:^|[.!?:;。！？]\s*|[\"“„(]\s*)$")

SHORT = 20
"""Words of a text that is all question."""

_NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split(), start=2)}
NEGATION = re.compile(
    r"\b(?:not|never|without|cannot|no longer|neither)\b"
    r"|n['’]t\b|\b(?:dont|doesnt|didnt|cant|wont|isnt|wasnt|havent|hasnt)\b",
    re.IGNORECASE,
)
HARMLESS_NEGATION = re.compile(  # "Isn't it big?" asks what "Is it big?" asks
    r"^\W*\w+n['’]t\b|\bwhether or not\b|\bor not\b", re.IGNORECASE
)
OPPOSITES = tuple(
    tuple(frozenset(side.casefold().split()) for side in pair.split("/"))
    for pair in (
        "increase increases increased increasing raise raises raised / "
        "decrease decreases decreased decreasing reduce reduces reduced lower lowers lowered",
        "start starts started begin begins began begun starting / stop stops stopped end ends ended stopping ending",
        "enable enables enabled activate activates activated / "
        "disable disables disabled deactivate deactivates deactivated",
        "open opens opened opening / close closes closed closing",
        "buy buys bought buying purchase / sell sells sold selling",
        "before / after",
        "highest largest biggest longest tallest most greatest / lowest smallest shortest least fewest",
        "oldest earliest first / youngest newest latest last",
        "above over / below under",
        "allowed legal permitted / forbidden illegal prohibited banned",
        "safe / dangerous unsafe harmful",
        "advantage advantages benefit benefits pros / disadvantage disadvantages drawback drawbacks cons",
        "win wins won winner / lose loses lost loser",
        "send sends sent sending / receive receives received receiving",
        "deposit deposits deposited / withdraw withdraws withdrew withdrawal",
        "add adds added adding / remove removes removed removing delete",
        "north northern / south southern",
        "east eastern / west western",
        "male man men boy husband father son / female woman women girl wife mother daughter",
        "left / right",
        "hot / cold",
        "high / low",
        "import imports / export exports",
    )
)
_KINDS = {
    "a person": re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE),
    "a time": re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|century)\b", re.IGNORECASE),
    "a place": re.compile(r"\bwhere\b|\b(?:what|which) (?:city|country|place|state|town|continent)\b", re.IGNORECASE),
    "a reason": re.compile(r"\bwhy\b", re.IGNORECASE),
    "a count": re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE),
}
_GERMAN = """der das ist sind und wurde wurden wie welche welcher welches welchen welchem für im eine einer einem den
dem von wer wann wo nicht können gibt hatte nach zum zur mit auf"""
GERMAN = frozenset(_GERMAN.split())
"""Words by which German is known: its nouns have capitals, and are no names."""
_FUNCTION = """a an the and or of in on at by for with from to is are was were be been being do does did has have
had can could will would shall should may might must i you he she it we they me my your his her its our their this
that these those there what which who whom whose when where why how not no if so than then as about please tell know
any some"""
FUNCTION = frozenset(_FUNCTION.split())


def contradiction(question: str, stored: str) -> str | None:
    """Tell how the two questions cannot have one answer, in a few words; None if no rule sees
    it.

    >>> contradiction("How do I disable the alarm?", "How do I enable the alarm?") is None
    False
    """
    question, stored = _normalised(question), _normalised(stored)
    short = max(len(_words(question)), len(_words(stored))) <= SHORT

    our_kinds, their_kinds = _kinds_asked_for(question), _kinds_asked_for(stored)
    if short and our_kinds and their_kinds and not set(our_kinds) & set(their_kinds):
        return f"one asks for {our_kinds[0]}, the other for {their_kinds[0]}"

    ours, theirs = _numbers(question), _numbers(stored)
    if ours - theirs and theirs - ours:
        return f"another number: {' '.join(sorted(ours - theirs))}, {' '.join(sorted(theirs - ours))}"
    if short and (opposite := _opposite(question, stored)):
        return f"opposites: {opposite[0]}, {opposite[1]}"
    if short and _negated(question) != _negated(stored) and _overlap(question, stored) >= 0.6:
        return "one is negated"

    names = _names_apart(question, stored)
    return f"another name: {names[0]}, {names[1]}" if names else None


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _kinds_asked_for(question: str) -> list[str]:
    return [name for name, kind in _KINDS.items() if kind.search(question)]


def _numbers(text: str) -> set[str]:
    digits = {re.sub(r"[,.](?=\d{3}\b)", "", number) for number in NUMBER.findall(text)}
    return digits | {NUMBER_WORDS[word] for word in _words(text) if word in NUMBER_WORDS}


def _opposite(question: str, stored: str) -> tuple[str, str] | None:
    """A word of each that are opposites, unless one of the texts has both sides."""
    first, second = set(_words(question)), set(_words(stored))
    for left, right in OPPOSITES:
        for here, there in ((left, right), (right, left)):
            if first & here and second & there and not first & there and not second & here:
                return min(first & here), min(second & there)
    return None


def _negated(text: str) -> bool:
    return len(NEGATION.findall(HARMLESS_NEGATION.sub(" ", text))) % 2 == 1


def _overlap(question: str, stored: str) -> float:
    """Share of the content words of the text with fewer of them that the other one has."""
    short, long = sorted((_content(question), _content(stored)), key=len)
    return len(short & long) / len(short) if short else 0.0


def _content(text: str) -> set[str]:
    return {word for word in _words(NEGATION.sub(" ", text)) if word not in FUNCTION}


def _names_apart(question: str, stored: str) -> tuple[str, str] | None:
    """A name of each that the other does not have in any form. Names of one text alone are no contradiction."""
    if GERMAN.intersection(_words(question)) or GERMAN.intersection(_words(stored)):
        return None
    first, second = _names(question), _names(stored)
    only_first = [name for name in first if not _said(name, stored, second)]
    only_second = [name for name in second if not _said(name, question, first)]
    return (only_first[0], only_second[0]) if only_first and only_second else None


def _names(text: str) -> list[str]:
    """Capitalised words inside sentences; none of a text where every word that carries meaning has a capital."""
    matches = list(WORD.finditer(text))
    capitals = [match for match in matches if match[0][0].isupper()]
    bearing = [match for match in matches if match[0].casefold() not in FUNCTION]
    if len(matches) > 3 and all(match[0][0].isupper() for match in bearing):
        return []
    return [
        match[0].removesuffix("'s").removesuffix("’s")
        for match in capitals
        if not SENTENCE_START.search(text[: match.start()]) and match[0].casefold() not in FUNCTION
    ]


def _said(name: str, text: str, names: Iterable[str]) -> bool:
    """Whether the text has the word, one of the same stem ("Germany", "German"), or the words that it abbreviates."""
    low, words = name.casefold(), _words(text)
    if low in words or (len(low) > 3 and low in text.casefold()):
        return True
    if any(len(low) > 4 and len(word) > 4 and low[:4] == word[:4] for word in words):
        return True
    initials = "".join(other[0] for other in names).casefold()
    acronyms = [other.casefold() for other in names if len(other) > 1 and other.isupper()]
    return (len(low) > 1 and low in initials) or any(low[0] in acronym for acronym in acronyms)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(text)]
