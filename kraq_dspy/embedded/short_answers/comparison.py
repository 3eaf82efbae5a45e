"""Compares two things that a question names: by a sentence that compares them, or by a value that is told of each.

>>> stated("longer", "the Oren", "the Sila", "The Sila is longer than the Oren.")
'the Sila'
"""

import re
from collections.abc import Sequence

from kraq_dspy.embedded.short_answers.meaning import Keys, is_among, is_in, keys_of, vocabulary_of, words_of

_PAIR_WORDS = """
longer/shorter older/younger older/newer bigger/smaller larger/smaller higher/lower taller/shorter heavier/lighter
dearer/cheaper faster/slower quicker/slower warmer/colder hotter/colder hotter/cooler later/earlier more/less more/fewer
wider/narrower deeper/shallower better/worse stronger/weaker harder/softer louder/quieter thicker/thinner
farther/nearer further/closer broader/narrower richer/poorer later/first sooner/later
"""
_PAIRS = _PAIR_WORDS.split()
OPPOSITES: dict[str, set[str]] = {}
for _pair in _PAIRS:
    _more, _less = _pair.split("/")
    OPPOSITES.setdefault(_more, set()).add(_less)
    OPPOSITES.setdefault(_less, set()).add(_more)

COMPARATIVES = frozenset(OPPOSITES) | {"expensive"}

_KINDS_OF = {
    "longer": ("length", "duration"), "shorter": ("length", "duration"), "taller": ("length",), "higher": ("length",),
    "lower": ("length",), "deeper": ("length",), "shallower": ("length",), "wider": ("length",),
    "narrower": ("length",),
    "broader": ("length",), "thicker": ("length",), "thinner": ("length",), "heavier": ("mass",), "lighter": ("mass",),
    "cheaper": ("money",), "dearer": ("money",), "faster": ("speed", "duration"), "slower": ("speed", "duration"),
    "quicker": ("duration", "speed"), "warmer": ("temperature",), "colder": ("temperature",),
    "hotter": ("temperature",),
    "cooler": ("temperature",), "older": ("date", "duration"), "younger": ("date", "duration"), "newer": ("date",),
    "earlier": ("date", "clock"), "later": ("date", "clock"), "first": ("date", "clock"), "sooner": ("date", "clock"),
    "stronger": ("power", "force"), "weaker": ("power", "force"), "louder": ("sound",), "quieter": ("sound",),
    "larger": ("area", "length", "volume", "number"), "bigger": ("area", "length", "volume", "number"),
    "smaller": ("area", "length", "volume", "number"), "more": ("money",), "less": ("money",),
}  # fmt: skip
_SMALLER = """
shorter lower shallower narrower thinner lighter cheaper slower colder cooler earlier first sooner weaker quieter
smaller less fewer older
"""
_LESS = frozenset(_SMALLER.split())
"""Comparatives of the smaller value; "older" is that of the earlier date."""
_COMPARATIVE = re.compile(
    rf"\b(?P<degree>(?:more|less) (?=[a-z]+(?:ive|ful|ous|ant|ent|ed|ing|al|ult|ble|ar)\b))?"
    rf"(?P<word>{'|'.join(sorted(OPPOSITES, key=len, reverse=True))}|[a-z]{{3,}}ier|[a-z]{{3,}}er(?= (?:than|,)))\b",
    re.IGNORECASE,
)
_NO_COMPARATIVES = frozenset(("number", "river", "other", "whether", "rather", "whichever", "either", "water", "paper"))
_THAN = re.compile(r"\bthan\b", re.IGNORECASE)
_EXPENSIVE = re.compile(r"\bmore expensive\b|\bcosts? more\b|\bdearer\b", re.IGNORECASE)
_CHEAP = re.compile(r"\bless expensive\b|\bcosts? less\b|\bcheaper\b", re.IGNORECASE)


_ASKS_WHICH = re.compile(r"\b(?:who|which|what|whose)\b", re.IGNORECASE)
_BEFORE_A_NAME = re.compile(r"[,:]\s|\s(?=(?:the )?[\"“]?[A-Z0-9])")
_OR = re.compile(r",? or (?=[^?])")


def two_named(question: str) -> tuple[str, str] | None:
    """The two things of which a question asks which one it is; None if it names no two.

    The first begins behind a comma or a colon, or with a capital; nothing between it and the second ends a clause.

    >>> two_named("Which river is longer, the Oren or the Sila?")
    ('the Oren', 'the Sila')
    >>> two_named("Did Ada or Ben write it?") is None
    True
    """
    asks = _ASKS_WHICH.search(question)
    if asks is None:
        return None

    start = asks.end()
    for alternative in _OR.finditer(question, asks.end()):
        place = alternative.start()
        start = max(start, question.rfind(",", start, place), question.rfind("?", start, place))
        before = _BEFORE_A_NAME.search(question, start, place)
        if before and before.end() < place:
            second = question[alternative.end() :].partition("?")[0]
            return _bare(question[before.end() : place]), _bare(second)
        start = max(start, place - 1)  # what was looked through has no beginning of a name
    return None


def _bare(name: str) -> str:
    return name.strip(' "“”')


def comparative_in(text: str) -> str:
    """The word by which a text compares, "" for none: "longer", "cheaper" for "less expensive"."""
    if _EXPENSIVE.search(text):
        return "dearer"
    if _CHEAP.search(text):
        return "cheaper"
    for match in _COMPARATIVE.finditer(text):
        if match["word"].lower() not in _NO_COMPARATIVES:
            return match["word"].lower()
    return ""


def kinds_compared(comparative: str) -> tuple[str, ...]:
    """The kinds of value by which two things are compared so; () where values do not tell."""
    return _KINDS_OF.get(comparative, ())


def wants_less(comparative: str, kind: str) -> bool:
    """Whether the smaller value of a kind is meant: that of the older by date is the earlier."""
    if comparative in ("older", "younger") and kind == "duration":
        return comparative == "younger"
    if comparative in ("younger", "newer"):
        return False
    if comparative in ("faster", "quicker", "slower") and kind == "duration":
        return comparative != "slower"
    return comparative in _LESS


_SAID_OF = {
    "higher": "high height elevation tall above stands rises", "lower": "low high height elevation above",
    "taller": "tall height high storey story", "longer": "long length runs flows lasts", "shorter": "short long length",
}  # fmt: skip
"""Words that say of which measure a sentence tells: not how far away a mountain is."""


def says_measure(comparative: str, sentence: str) -> bool:
    """Whether a value in the sentence is of what is compared; those of time are.

    >>> [says_measure("higher", text) for text in ("Manaslu is 8163 m above the sea.", "Manaslu is 3 km away.")]
    [True, False]
    """
    if "date" in kinds_compared(comparative):
        return True
    own = vocabulary_of(sentence)
    words_for_measure = [comparative, *_SAID_OF.get(comparative, "").split()]
    return any(word in sentence.lower() or is_in(keys_of(word), own) for word in words_for_measure)


def stated(comparative: str, first: str, second: str, sentence: str) -> str:
    """Which of two the sentence says is more so; "" if it does not compare them by this word or its opposite."""
    for clause in re.split(r"[;,] (?:but |and |while |whereas )?| (?:but|while|whereas) ", sentence):
        than = _THAN.search(clause)
        if than is None or re.search(r"\bnot\b|n[’']t\b|\bno\b|\bas\b", clause):
            continue
        word = comparative_in(clause)
        if word != comparative and word not in OPPOSITES.get(comparative, ()):
            continue
        more, less = _keys(clause[: than.start()]), _keys(clause[than.end() :])
        for subject, other in ((first, second), (second, first)):
            own, others = _distinct(subject, other), _distinct(other, subject)
            if own and others and _all(own, more) and _all(others, less) and not _all(others, more):
                return subject if word == comparative else other
    return ""


def _keys(text: str) -> list[Keys]:
    return [word.keys for word in words_of(f"· {text}")]


def _distinct(name: str, other: str) -> list[Keys]:
    """The words by which a name differs from another."""
    others = _keys(other)
    return [key for key in _keys(name) if not is_among(key, others)]


def _all(keys: Sequence[Keys], among: Sequence[Keys]) -> bool:
    return all(is_among(key, among) for key in keys)
