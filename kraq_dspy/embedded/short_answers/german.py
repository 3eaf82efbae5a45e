"""Gives the short answer that a German sentence has: a date, a time of day, an amount, a person or a place.

A value is given if its part of the sentence has every word of the question that bears meaning; nouns may stand in the
first part, or above the sentence. Where two values would do, and where a condition ("nach", "letzte", "nicht") is
missing, the sentence has to answer.

>>> asked = read_german("Wann wird die Heizung abgeschaltet?")
>>> short_in_german(asked, "Die Heizung wird am 3. Oktober eingeschaltet und am 30. April abgeschaltet.", "")
'30. April'
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from kraq_dspy.embedded.asking.clozes.cloze import FIRST_NAMES, YEAR, any_of, words_of
from kraq_dspy.embedded.asking.clozes.german_clause import ABOUT
from kraq_dspy.language.text import content_words

_TABLE = tomllib.loads(Path(__file__).with_name("german.toml").read_text("utf-8"))
_LIGHT = frozenset(_TABLE["light"].split())
_MONTH = any_of([*words_of("de", "months"), *(f"{month}." for month in _TABLE["short_months"].split())])
_DAY = r"\d{1,2}\.(?: ?(?:und|bis|–|-) ?\d{1,2}\.)?"
_NUMBER = (
    rf"(?:(?:{ABOUT}) )?"
    r"(?:\d{1,3}(?:\.\d{3}){1,4}(?:,\d{1,4})?|\d{1,9}(?:,\d{1,4})?"
    rf"|\b(?:{any_of(words_of('de', 'numbers'))})\b)"
    r"(?: Millionen| Milliarden| Mio\.| Mrd\.)?"
)
_AMOUNT = (
    rf"(?:(?:[-−]|[Mm]inus )(?=\d))?(?:[Zz]wischen {_NUMBER} und {_NUMBER}"
    rf"|{_NUMBER}(?:(?: bis(?: zu)? | oder | ?[-–] ?){_NUMBER})?)"
)
"""A number with its sign, or two between which the value lies; half of these would be another value."""
_BOUNDARY = r"(?<![\w.,:–−-])"
_BEFORE_OR_AFTER = re.compile(r"(?:[Kk]urz )?(?:[Vv]or|[Nn]ach)(?: dem)? ")
_ABOUT_WHEN = rf"(?:{_BEFORE_OR_AFTER.pattern}|(?:[Gg]egen|[Uu]m|[Ee]twa|[Cc]a\.|[Cc]irca) )?"
_PATTERNS = {
    "date": re.compile(
        rf"(?<!\w){_ABOUT_WHEN}(?P<date>\b{_DAY} (?:{_MONTH})(?: {YEAR})?(?!\w)|\b\d{{1,2}}\.\d{{1,2}}\.{YEAR}\b"
        rf"|\b(?:{_MONTH}) {YEAR}\b"
        rf"|\b{_DAY} des Monats\b|(?<![\d.,])\b{YEAR}\b(?![.,]\d| [A-ZÄÖÜ]| (?:Euro|€|Meter|km|m\b))"
        r"|\b(?:Mon|Diens|Mitt|Donners|Frei|Sams|Sonn)(?:tags?|wochs?)\b)"
    ),
    "clock": re.compile(
        r"(?<![\d.,:])(?:\d{1,2}(?:[:.]\d{2})?(?: Uhr)? ?(?:bis|und|–|-) ?)?\d{1,2}(?:[:.]\d{2})? Uhr\b(?: \d{2})?"
        r"|\b\d{1,2}:\d{2}\b"
    ),
    "number": re.compile(rf"{_BOUNDARY}({_AMOUNT}) (?:[a-zäöüß]{{1,30}}(?:e|en|er) )?(?P<thing>[A-ZÄÖÜ][\w-]{{1,40}})"),
    "person": re.compile(
        rf"(?:(?:{any_of(_TABLE['titles'].split())})\.? (?:[a-z]{{2,4}}\. )?){{0,3}}"
        r"[A-ZÄÖÜ][\w’'-]{1,30}(?: (?:von|van|de|der|zu))?(?: [A-ZÄÖÜ][\w’'-]{1,30}){0,2}"
    ),
    "place": re.compile(
        r"\b(?:in|im|auf|am|an|bei|beim|vor|neben|unter|hinter) (?:(?:der|dem|den|einer|einem) )?(?:\d{1,2}\. )?"
        r"(?:[a-zäöüß]{1,30}(?:en|er|em) )?[A-ZÄÖÜ][\w-]{1,40}(?: [A-ZÄÖÜ][\w-]{1,40})?"
    ),
}
for _kind, _units in _TABLE["units"].items():
    _PATTERNS[_kind] = re.compile(rf"{_BOUNDARY}{_AMOUNT}[ \u00a0]?(?:{any_of(_units.split())})(?![\w²/])")
_SIGNS = {"%": "Prozent", "€": "Euro", "°C": "Grad"}
_TITLED = re.compile(rf"^(?:{any_of(_TABLE['titles'].split())})\b")
_NO_PLACE = re.compile(
    rf"\b(?:{_MONTH}|Jahre?s?|Monate?n?|Uhr|\w{{2,12}}tags?|Rahmen|Durchschnitt|Folge|Regel|Fall|Ende|Anfang)(?!\w)"
)
_LIMITS = re.compile(
    r"\b(?:nach|vor|ohne|außer|erste[nrms]?|zweite[nrms]?|dritte[nrms]?|letzte[nrms]?|nächste[nrms]?|vorige[nrms]?"
    r"|mehr|weniger|mindestens|höchstens|insgesamt|zusammen|nicht|keine?[nrms]?|durchschnittlich|ursprünglich|früher"
    r"|zuletzt|zuerst|sonst)\b"
)
_NOT = re.compile(r"\b(?:nicht|keine?[nrms]?|nie|niemals|niemand|weder)\b")
_BREAKS = re.compile(r"; | [–—] |, | (?:und|sowie|aber|während|oder) ")
_LISTS = re.compile(r",? ?(?:und |oder |sowie )?(?:um |am |im |in |an |bei )?(?:der |dem )?")
_WORD = re.compile(r"[^\W\d_][\w-]*")
_OF_PRICE = re.compile(rf"\b[\w-]{{0,30}}(?:{any_of(_TABLE['prices'].split())})e?n?s?\b", re.IGNORECASE)
_PREFIXED = re.compile(r"^(ein|ab|auf|aus|an|zu|vor|um|mit|nach|weg|her|hin)?ge(?=\w{3,30}(?:t|en)$)")
_ENDING = re.compile(r"(?:ungen|ung|eten|ete|ten|te|en|ern|er|es|em|et|st|e|n|s|t)$")
_SHORTEST_STEM, _SHORTEST_BEGINNING, _LONGER = 3, 5, 3
_TOGETHER = 3
"""Words of a question, up to which half of them may be nowhere in the text of an answer."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A word that a text has to have; `is_doing` says that it has to stand beside the value, as no noun does."""

    stem: str
    is_doing: bool


@dataclass(frozen=True, slots=True)
class AskedInGerman:
    """What a German question asks for: kinds of `_PATTERNS` and "year", the words that a text has to have, what is
    counted ("" for nothing), and conditions."""

    question: str
    kinds: tuple[str, ...]
    words: tuple[Needed, ...]
    thing: str = ""
    limits: frozenset[str] = frozenset()


def read_german(question: str) -> AskedInGerman | None:
    """Read a German question; None for one that asks for no value."""
    kinds, thing = _kinds_of(question)
    if not kinds:
        return None
    behind = _ASKING.sub("", question)
    limits = frozenset(_LIMITS.findall(behind.lower()))
    words = tuple(word for word in _needed(behind) if not thing or not same(word.stem, stem_of(thing)))
    return AskedInGerman(question, kinds, words, thing, limits)


_WHEN = "Von wann bis wann|Bis wann|Ab wann|Seit wann|Wann"
_AT_WHICH_HOUR = "Um wie ?viel Uhr|Zu welcher Uhrzeit"
_IN_WHICH_YEAR = "In welchem Jahr"
_WHO = "Wer|Wen|Wem|Von wem"
_ASKING = re.compile(rf"^(?:{_WHEN}|{_AT_WHICH_HOUR}|{_IN_WHICH_YEAR}|Wie viele?n?|Wieviele?|Wie|{_WHO}|Was|Wo)\b")
_ADJECTIVES: dict[str, tuple[str, ...]] = {
    "lange": ("duration",), "schwer": ("mass",), "lang": ("length", "duration"), "hoch": ("length",),
    "breit": ("length",), "tief": ("length",), "weit": ("length",), "dick": ("length",), "groß": ("area", "length"),
    "alt": ("duration",), "schnell": ("speed",), "warm": ("temperature",), "kalt": ("temperature",),
    "heiß": ("temperature",), "teuer": ("money",),
}  # fmt: skip
_ASKS = (
    (re.compile(rf"(?:{_AT_WHICH_HOUR})\b"), ("clock",)),
    (re.compile(rf"(?:{_WHEN})\b"), ("date", "clock")),
    (re.compile(rf"{_IN_WHICH_YEAR}\b"), ("year",)),
    (re.compile(rf"(?:{_WHO})\b|Wie (?:heißt|hieß)\b"), ("person",)),
    (re.compile(r"Wo\b"), ("place",)),
    (
        re.compile(r"Was (?:kostet|kosten|kostete)\b|Was hat .{1,120}gekostet|Wie ?viel (?:kostet|kosten|kostete)\b"),
        ("money",),
    ),
)


def _kinds_of(question: str) -> tuple[tuple[str, ...], str]:
    """The kinds of value that are asked for, and what is counted."""
    for pattern, kinds in _ASKS:
        if pattern.match(question):
            return kinds, ""
    if counted := re.match(r"(?:Wie ?viele?n?|Wieviele?) (?:[a-zäöüß]{1,30} )?(?P<thing>[A-ZÄÖÜ][\w-]*)", question):
        for kind, units in _TABLE["units"].items():
            if counted["thing"] in units.split():
                return (kind,), ""
        return ("number",), counted["thing"]
    if described := re.match(r"Wie (?P<adjective>[a-zß]+)\b", question):
        if described["adjective"] == "hoch" and _OF_PRICE.search(question):
            return ("money", "percent"), ""
        return _ADJECTIVES.get(described["adjective"], ()), ""
    return (), ""


def _needed(text: str) -> list[Needed]:
    words = list(_WORD.finditer(text))
    bearing = set(content_words(text, "de"))
    needed = []
    for match, following in pairwise([*words, None]):
        assert match is not None
        word = match[0]
        if word.lower() in _LIGHT or not bearing.intersection(content_words(word, "de")):
            continue
        is_attribute = following is not None and following[0][:1].isupper()
        needed.append(Needed(stem_of(word), is_doing=word.islower() and not is_attribute))
    return needed


@lru_cache(maxsize=1 << 14)
def stem_of(word: str) -> str:
    """ "gründ" of "gegründet", "gründete" and "Gründung"."""
    plain = word.lower().replace("ß", "ss")
    plain = _PREFIXED.sub(lambda match: match[1] or "", plain)
    bare = _ENDING.sub("", plain)
    return bare if len(bare) >= _SHORTEST_STEM else plain


@lru_cache(maxsize=1)
def _groups() -> dict[str, int]:
    return {
        stem_of(word): number
        for number, line in enumerate(_TABLE["same"].strip().splitlines())
        for word in line.split()
    }


def same(first: str, second: str) -> bool:
    """Whether two stems are of one word, or of words that mean the same."""
    if first == second or (first in _groups() and _groups()[first] == _groups().get(second)):
        return True
    begins = first.startswith(second) or second.startswith(first)
    return begins and min(len(first), len(second)) >= _SHORTEST_BEGINNING and abs(len(first) - len(second)) <= _LONGER


def _has(stem: str, stems: Sequence[str]) -> bool:
    return any(same(stem, other) for other in stems)


@dataclass(frozen=True, slots=True)
class _Value:
    text: str
    start: int
    end: int


def short_in_german(asked: AskedInGerman, sentence: str, above: str) -> str:
    """The short answer of a sentence; "" if it does not plainly say it. `above` is its title and its heading."""
    lowered = f"{above} {sentence}".lower()
    if any(not re.search(rf"\b{limit}\b", lowered) for limit in asked.limits):
        return ""
    if _NOT.search(sentence) and not _NOT.search(asked.question):
        return ""

    values = _values(asked, sentence)
    parts = _parts(sentence)
    held = _stems(above)
    rated: list[tuple[int, _Value]] = []
    for value in values:
        own = next(_stems(part) for start, part in parts if start <= value.start < start + len(part))
        around = [*own, *_stems(parts[0][1]), *held]
        if all(_has(word.stem, own if word.is_doing else around) for word in asked.words):
            rated.append((sum(_has(word.stem, own) for word in asked.words), value))
    most = max((n_own for n_own, _ in rated), default=0)
    best = {value.text for n_own, value in rated if n_own == most}
    return next(iter(best)) if len(best) == 1 else ""


def _stems(text: str) -> list[str]:
    """The stems of the words, and of those for which signs stand."""
    for sign, word in _SIGNS.items():
        text = text.replace(sign, f" {word} ")
    return [stem_of(match[0]) for match in _WORD.finditer(text)]


def _parts(sentence: str) -> list[tuple[int, str]]:
    """The sentence cut at its commas and where "und" and the like stand; each part with its place."""
    edges = [0, *(match.start() for match in _BREAKS.finditer(sentence)), len(sentence)]
    whole: list[tuple[int, str]] = []
    for start, end in pairwise(edges):
        whole.append((start, sentence[start:end]))
    return whole


def _values(asked: AskedInGerman, sentence: str) -> list[_Value]:
    """The values of the asked kinds, those of the question left out."""
    values = []
    for kind in asked.kinds:
        for match in _PATTERNS["date" if kind == "year" else kind].finditer(sentence):
            text = match[1] if kind == "number" else match[0]
            bare = match["date"] if kind in ("date", "year") else text
            if not _is_in(bare, asked.question) and _is_meant(asked, kind, match):
                values.append(_Value(text, match.start(), match.start() + len(text)))
    if "year" in asked.kinds:
        exact = [value for value in values if not _BEFORE_OR_AFTER.match(value.text)]
        years = [(re.search(YEAR, value.text), value) for value in exact]
        return [_Value(year[0], value.start, value.end) for year, value in years if year is not None]
    return _enumerated(sentence, values)


def _is_in(value: str, question: str) -> bool:
    """Whether a question has the value, not as a part of another one: the 4 of 1924."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", question) is not None


def _enumerated(sentence: str, values: Sequence[_Value]) -> list[_Value]:
    """The values, with those as one that the sentence lists: "um 8 Uhr, um 13 Uhr und um 17 Uhr"."""
    listed: list[_Value] = []
    for value in sorted(values, key=lambda each: each.start):
        last = listed[-1] if listed else None
        if last is not None and _LISTS.fullmatch(sentence[last.end : value.start]):
            listed[-1] = _Value(sentence[last.start : value.end], last.start, value.end)
        else:
            listed.append(value)
    return listed


def _is_meant(asked: AskedInGerman, kind: str, match: re.Match[str]) -> bool:
    """Whether a value is of the thing that is counted, somebody's name, or a place."""
    if kind == "number":
        return same(stem_of(match["thing"]), stem_of(asked.thing))
    if kind == "person":
        has_first_name = " " in match[0] and match[0].split()[0] in FIRST_NAMES
        return has_first_name or _TITLED.match(match[0]) is not None
    return kind != "place" or _NO_PLACE.search(match[0]) is None


def is_told_in_german(asked: AskedInGerman, passages: Sequence[str]) -> bool:
    """Whether the passages may answer: not where half of the few words of a question stand nowhere."""
    needed = [word.stem for word in asked.words]
    if asked.thing:
        needed.append(stem_of(asked.thing))
    everywhere = [*{stem for passage in passages for stem in _stems(passage)}]
    n_nowhere = sum(not _has(stem, everywhere) for stem in needed)
    return not 0 < len(needed) <= _TOGETHER or 2 * n_nowhere < len(needed)
