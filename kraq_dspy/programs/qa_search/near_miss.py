"""Finds by rules questions that read alike and ask something else: another number, another name, a negation.

A rule speaks only where the two texts contradict each other; what one of them merely leaves out is for a model to
judge. Of stories with a question in them, only numbers and names are compared: in doctors' pairs, negations stood as
often between two that mean the same. Words are English; numbers and names are those of any language but German, whose
nouns have capitals, too.
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
_GERMAN = """der das ist sind und wurde wurden wie welche welcher welches welchen welchem für im eine einer einem den
dem von wer wann wo nicht können gibt hatte nach zum zur mit auf"""
GERMAN = frozenset(_GERMAN.split())
_FUNCTION = """a an the and or of in on at by for with from to is are was were be been being do does did has have
had can could will would shall should may might must i you he she it we they me my your his her its our their this
that these those there what which who whom whose when where why how not no if so than then as about please tell know
any some"""
FUNCTION = frozenset(_FUNCTION.split())


def contradiction(question: str, stored: str) -> str | None:
    """How the two questions cannot have one answer, in a few words; None where no rule sees it.

    >>> contradiction("Who won in 1998?", "Who won in 2002?")
    'another number: 1998, 2002'
    """
    question, stored = (" ".join(unicodedata.normalize("NFKC", text).split()) for text in (question, stored))
    ours, theirs = _numbers(question), _numbers(stored)
    if ours - theirs and theirs - ours:
        return f"another number: {' '.join(sorted(ours - theirs))}, {' '.join(sorted(theirs - ours))}"
    is_short = max(len(_words(question)), len(_words(stored))) <= SHORT
    if is_short and _is_negated(question) != _is_negated(stored):
        few, many = sorted((_content(question), _content(stored)), key=len)
        if few and len(few & many) >= 0.6 * len(few):
            return "one is negated"
    if GERMAN.isdisjoint([*_words(question), *_words(stored)]):
        first, second = _names(question), _names(stored)
        only_first = [name for name in first if not _has_name(name, stored, second)]
        only_second = [name for name in second if not _has_name(name, question, first)]
        if only_first and only_second:  # names of one text alone are no contradiction
            return f"another name: {only_first[0]}, {only_second[0]}"
    return None


def _numbers(text: str) -> set[str]:
    digits = {re.sub(r"[,.](?=\d{3}\b)", "", number) for number in NUMBER.findall(text)}
    return digits | {NUMBER_WORDS[word] for word in _words(text) if word in NUMBER_WORDS}


def _is_negated(text: str) -> bool:
    return len(NEGATION.findall(HARMLESS_NEGATION.sub(" ", text))) % 2 == 1


def _content(text: str) -> set[str]:
    return {word for word in _words(NEGATION.sub(" ", text)) if word not in FUNCTION}


def _names(text: str) -> list[str]:
    """Capitalised words inside sentences; none of a text where every word that carries meaning has a capital."""
    matches = list(WORD.finditer(text))
    bearing = [match for match in matches if match[0].casefold() not in FUNCTION]
    if len(matches) > 3 and all(match[0][0].isupper() for match in bearing):
        return []
    inside = (match for match in bearing if not SENTENCE_START.search(text[: match.start()]))
    return [re.sub(r"['’]s$", "", match[0]) for match in inside if match[0][0].isupper()]


def _has_name(name: str, text: str, names: Iterable[str]) -> bool:
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
