"""Reads what an English question asks for: which kind of value, of what, and under which conditions.

>>> asked = read("How much does the heater weigh?")
>>> asked.kinds, [word.text for word in asked.words]
(('mass',), ['heater', 'weigh'])
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.short_answers.comparison import COMPARATIVES, comparative_in
from kraq_dspy.embedded.short_answers.meaning import Word, is_light, keys_of, words_of
from kraq_dspy.language.vocabulary import COMMON, KIND_OF_NOUN

ANY_MEASURE = ("length", "mass", "volume", "duration", "temperature", "power", "energy", "voltage", "current", "force",
               "pressure", "frequency", "speed", "area", "data", "sound", "percent", "money")  # fmt: skip
_OF_ADJECTIVE = {
    "long": ("length", "duration"), "far": ("length",), "high": ("length",), "tall": ("length",), "wide": ("length",),
    "broad": ("length",), "deep": ("length",), "thick": ("length",), "old": ("duration", "number"), "heavy": ("mass",),
    "fast": ("speed",), "hot": ("temperature",), "cold": ("temperature",), "warm": ("temperature",),
    "large": ("area", "length", "volume", "data"), "big": ("area", "length", "volume", "data"), "loud": ("sound",),
    "strong": ("force", "power", "percent"), "expensive": ("money",),
}  # fmt: skip
_OF_NOUN = {
    "money": "price cost fee charge fare deposit salary wage rent budget profit revenue sale sales turnover fine loan "
             "income loss donation grant discount tax bill payment prize toll premium earnings debt",
    "mass": "weight mass", "length": "length width height depth diameter distance altitude thickness radius size",
    "temperature": "temperature", "speed": "speed pace", "power": "power output wattage", "voltage": "voltage",
    "volume": "volume capacity", "duration": "duration timeout", "area": "area", "force": "force load",
    "pressure": "pressure",
    "frequency": "frequency", "current": "current", "energy": "energy",
    "percent": "percentage share proportion rate discount interest tax margin turnout",
    "date": "date day birthday deadline", "year": "year", "clock": "time hour",
    "number": "number population total count",
}  # fmt: skip
_KINDS_OF_NOUN: dict[str, tuple[str, ...]] = {}
for _kind, _nouns in _OF_NOUN.items():
    for _noun in _nouns.split():
        _KINDS_OF_NOUN[_noun] = (*_KINDS_OF_NOUN.get(_noun, ()), _kind)
_KINDS_OF_NOUN |= {
    "load": ("force", "mass", "power"), "capacity": ("volume", "mass", "data", "number"), "size": ("length", "area"),
    "output": ("power", "number"), "day": ("date",), "length": ("length", "duration"), "discount": ("percent", "money"),
    "rate": ("percent", "money", "speed"), "tax": ("percent", "money"), "age": ("duration", "number"),
}  # fmt: skip

_LEAD = r"(?:^|[,;:] (?:but |and |so )?|^[a-z]+ (?:the )?)"
_HOW_MANY = re.compile(r"\bhow many (?P<thing>[\w'’-]+(?: [\w'’-]+)?)")
_HOW_MUCH_OF = re.compile(
    r"\bhow much (?P<thing>(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|have\b|had\b|will\b|would\b|can\b|could\b"
    r"|should\b|must\b|may\b|more\b|less\b|of\b|money\b|time\b)[\w'’-]+)"
)
_HOW = re.compile(rf"\bhow (?P<adjective>{'|'.join(_OF_ADJECTIVE)})\b")
_WHAT = re.compile(
    r"\b(?:what|which)(?: (?:is|are|was|were|will be)(?: the| its| his| her| their)?)? "
    r"(?P<phrase>[\w'’-]+(?: [\w'’-]+){0,3})"
)
_COST = re.compile(r"\bwhat (?:do|does|did|will|would|must)\b.*\b(?:cost|pay|charge|earn|be paid)\b")
_BOUND = re.compile(
    r"^(?:of|for|in|on|at|to|by|with|from|is|are|was|were|do|does|did|has|have|had|will|can|must|should)$"
)
_WEIGH = re.compile(r"\bhow much (?:do|does|did)\b.*\bweigh\b")
_TIME = re.compile(r"\bhow much time\b")

_LIMITS = re.compile(
    r"\b(?:first|second|third|fourth|fifth|last|next|previous|latest|earliest|only|most|least|fewest|more|less|fewer"
    r"|before|after|until|till|since|without|except|besides|both|total|altogether|together|combined|sum|average|mean"
    r"|other|another|else|over|under|above|below|between|maximum|minimum|at most|at least|up to|left|remaining|again"
    r"|never|always|often|usually|originally|formerly|currently|instead|alone|longest|shortest|highest"
    r"|lowest|largest|biggest|smallest|oldest|youngest|newest|best|worst|cheapest|fastest|slowest|heaviest|lightest"
    r"|tallest|deepest|widest|hottest|coldest|strongest|in all|to be)\b"
)
"""Words that ask for one of several, for an order or a sum: a sentence without them does not say its value."""
_NOT = re.compile(r"\b(?:not|no|never|nobody|none|neither|nor)\b|n[’']t\b", re.IGNORECASE)
_SWITCHED = re.compile(r"\b(on|off)\b(?= ?\??$)|\b(?:switch|turn|put|shut)\w* (?:\w+ ){0,3}?(on|off)\b")
_LASTS = re.compile(r"\b(?:do|does|did|will)\b.* last\b")
_ARE_HELD = frozenset(("held", "played", "staged", "based", "found", "set"))
"""What is said to be done to things of which the time or the place is asked for."""
_SOMEBODY_OF = re.compile(
    r"\b(?:the|an?) (?:[a-z-]+ )?[a-z-]*(?:er|or|ist|ian|man|ess|wife|husband|son|child|friend|king|queen|pope|head"
    r"|star|band) (?:of|in) (?:the )?[\"“]?[A-Z]"
)
_DID = re.compile(r" (?:born|died?|lived?|lives|from|study|studied|work(?:s|ed)?|marry|married)\b")
_OR = re.compile(r"\bor\b")
CLOSED = re.compile(
    r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|may|might|must|should|am)(?:n[’']t)?\b",
    re.IGNORECASE,
)
"""How a question begins that wants a yes or a no."""
_MOST_OF_ONE_STEP = 8  # words
_TWO_STEPS = re.compile(r"\b(?:who|that|which|whose|whom|where|when)\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for.

    `kinds` are those of `values_in` that answer it, beside "year", "person" and "place"; () where a sentence has to.
    `thing` is what "how many" counts or "how much" measures. `words` are those that a text has to have. `limits` are
    conditions such as "last", "after" and "not". `is_plain` is a question of one step, `is_closed` one that wants a
    yes or a no.
    """

    question: str
    kinds: tuple[str, ...]
    words: tuple[Word, ...]
    names: tuple[str, ...]
    thing: str = ""
    limits: frozenset[str] = field(default_factory=frozenset)
    is_plain: bool = True
    is_closed: bool = False


def read(question: str) -> Asked:
    """Read a question. One that asks for no value has no `kinds`."""
    lowered = " ".join(question.lower().split())
    kinds, thing, asking = _kinds(lowered)
    limits = set(_LIMITS.findall(lowered))
    if _NOT.search(question):
        limits.add("not")
    if _LASTS.search(lowered):
        limits.discard("last")
        asking |= {"last"}
    if comparative_in(lowered):
        asking |= COMPARATIVES
    if kinds in (("place",), ("date", "clock")):
        asking |= _ARE_HELD

    names = tuple(names_in(question))
    bearing = [word for word in words_of(question) if _is_bearing(word, asking)]
    if match := _SWITCHED.search(lowered):
        particle = match[1] or match[2]
        bearing.append(Word(particle, frozenset((f"switched {particle}",)), match.start(), match.end()))
    words = tuple(sorted(_with_names_whole(bearing, question, names), key=lambda word: word.start))

    behind = lowered.partition(" ")[2]
    is_plain = not (_TWO_STEPS.search(behind) or _is_of_two(question)) and len(words) <= _MOST_OF_ONE_STEP
    is_closed = CLOSED.match(lowered) is not None
    return Asked(question, kinds, words, names, thing, frozenset(limits), is_plain, is_closed)


def _is_of_two(question: str) -> bool:
    """Whether a question is for what somebody did who is named by another thing, or of two things."""
    somebody = _SOMEBODY_OF.search(question)
    return _OR.search(question) is not None or (
        somebody is not None and _DID.search(question, somebody.end()) is not None
    )


def _is_bearing(word: Word, asking: frozenset[str]) -> bool:
    own = word.text.lower()
    return own not in asking and not (word.text.islower() and is_light(own))


_HAS_DIGIT = re.compile(r"\d")
_FIRM = re.compile(r"(?:Ltd|Inc|Co|Corp|PLC|LLC|GmbH|Sons|Bros)\.?$|[&]$")


def _with_names_whole(words: Sequence[Word], question: str, names: Sequence[str]) -> Iterator[Word]:
    """The words, those of a name as one, which any of them tells: "Oaklyn" tells "Oaklyn Foods"."""
    spans = [(start, start + len(name)) for name in names if " " in name and (start := question.find(name)) >= 0]
    for start, end in spans:
        own = [word for word in words if start <= word.start < end]
        telling = [word for word in own if not _FIRM.match(word.text) and not _is_generic(word.text.lower())]
        yield from (word for word in own if _HAS_DIGIT.search(word.text))  # "Lark 4.1" is not "Lark 4.2"
        if telling:
            keys = frozenset().union(*(word.keys for word in telling))
            yield Word(question[start:end], keys, start, end)
        else:
            yield from (word for word in own if not _HAS_DIGIT.search(word.text))
    yield from (word for word in words if not any(start <= word.start < end for start, end in spans))


def _is_generic(word: str) -> bool:
    return word in COMMON or word in KIND_OF_NOUN or _HAS_DIGIT.search(word) is not None or word in _GENERIC


_GENERIC_WORDS = "team port mount mt st saint new old north south east west upper lower great grand hall sample"
_GENERIC = frozenset(_GENERIC_WORDS.split())
"""Words of names, beside common ones, that many names have."""


_Kinds: TypeAlias = tuple[tuple[str, ...], str, frozenset[str]]
"""The kinds of value, the thing that is counted, and the words that only ask."""

_FALLEN = frozenset(("rain", "snow", "hail", "sleet", "rainfall", "snowfall"))
_FALLS = frozenset(("fall", "falls", "fell", "fallen"))
"""What is asked to fall, and the verb, which texts leave out: "Tuesday brought 14 mm of rain"."""
_ASKS_AMOUNT = re.compile(r"\bhow much\b(?! (?:more|less|of)\b)")
_MOVES = re.compile(r"\b(?:rise|rose|fall|fell|grow|grew|increase|drop|decrease|change)\w*\b")
_OF_QUESTION_WORD: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(rf"{_LEAD}when\b"), ("date", "clock")),
    (re.compile(rf"{_LEAD}who(?:m|se)?\b"), ("person",)),
    (re.compile(rf"{_LEAD}where\b"), ("place",)),
)


def _kinds(lowered: str) -> _Kinds:
    """What the first words that ask for a value ask for; no kinds for none."""
    for reader in (_of_how_much, _of_how, _of_question_word):
        if kinds := reader(lowered):
            return kinds
    for match in _WHAT.finditer(lowered):
        if kinds := _of_phrase(match["phrase"].split()):
            return kinds
    return (), "", frozenset()


def _of_how_much(lowered: str) -> _Kinds | None:
    if _WEIGH.search(lowered):
        return ("mass",), "", frozenset()
    if match := _HOW_MANY.search(lowered):
        return _count(match["thing"])
    if _TIME.search(lowered):
        return ("duration",), "", frozenset(("time",))
    if match := _HOW_MUCH_OF.search(lowered):
        kinds = _KINDS_OF_NOUN.get(match["thing"], ())
        asking = _FALLS if match["thing"] in _FALLEN else frozenset()
        return (kinds or tuple(kind for kind in ANY_MEASURE if kind != "money")), match["thing"], asking
    if _ASKS_AMOUNT.search(lowered):
        kinds = ("percent", "money") if _MOVES.search(lowered) else ("money",)
        return kinds, "", frozenset(("cost", "costs", "price", "pay", "charge", "earn", "earns"))
    return None


def _of_how(lowered: str) -> _Kinds | None:
    if match := _HOW.search(lowered):
        return _of_adjective(match["adjective"], lowered)
    if _COST.search(lowered):
        return ("money",), "", frozenset(("cost", "costs", "pay", "charge"))
    return None


def _of_question_word(lowered: str) -> _Kinds | None:
    for pattern, kinds in _OF_QUESTION_WORD:
        if pattern.search(lowered):
            return kinds, "", frozenset()
    return None


def _of_phrase(phrase: list[str]) -> _Kinds | None:
    """What the noun behind "what" or "which" asks for, the last before a preposition or a verb."""
    head = []
    for word in phrase:
        if _BOUND.match(word):
            break
        head.append(word)
    noun = head[-1] if head else ""
    kinds = _KINDS_OF_NOUN.get(noun) or _KINDS_OF_NOUN.get(noun.removesuffix("s"))
    if kinds is None:
        return None
    is_asking = noun in ("price", "cost", "date", "day", "year", "time", "hour", "number", "percentage", "duration")
    return kinds, "", frozenset((noun,)) if is_asking else frozenset()


def _of_adjective(adjective: str, lowered: str) -> _Kinds:
    kinds = _OF_ADJECTIVE[adjective]
    if adjective == "long" and re.search(
        r"\bhow long (?:do|does|did|will|must|can|should|has|have|had|may|ago)\b", lowered
    ):
        kinds = ("duration",)
    is_asking = adjective in ("long", "far", "large", "big", "expensive")
    return kinds, "", frozenset((adjective,)) if is_asking else frozenset()


_UNITS_OF_TIME = frozenset(("seconds", "minutes", "hours", "days", "nights", "weeks", "months", "years", "decades"))
_UNITS_OF_LENGTH = frozenset(("metres", "meters", "kilometres", "kilometers", "miles", "feet"))
_MONEY = frozenset(("euros", "dollars", "pounds", "crowns", "francs"))


def _count(thing: str) -> _Kinds:
    first, _, second = thing.partition(" ")
    if first in _UNITS_OF_TIME:
        return ("duration",), "", frozenset((first,))
    if first in _UNITS_OF_LENGTH:
        return ("length",), "", frozenset((first,))
    if first in _MONEY:
        return ("money",), "", frozenset((first,))
    is_pair = second.endswith("s") and not first.endswith("s") and second not in ("is", "was", "does", "has")
    return ("number",), second if is_pair else first, frozenset()


def says_not(text: str) -> bool:
    """Whether a text denies something."""
    return _NOT.search(text) is not None


def counts(thing: str, word: str) -> bool:
    """Whether a word behind a number is the thing that is counted."""
    return not keys_of(thing).isdisjoint(keys_of(word))
