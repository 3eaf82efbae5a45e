"""Finds values in a sentence: dates, times of day, numbers of things, money and measures, each whole with its unit.

>>> [(value.kind, value.text) for value in values_in("It cost 1.2 million crowns in May 1934 and weighs 4.2kg.")]
[('money', '1.2 million crowns'), ('date', 'May 1934'), ('mass', '4.2kg')]
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kraq_dspy.language.vocabulary import MONTH

DATE = re.compile(rf"\b(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?,? \d{{4}}\b|\b(?:1[0-9]|20)\d\d\b")
YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
"""Years from 1000 to 2099, as they stand in texts."""

_SMALL_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
_SMALL = _SMALL_WORDS.split()
_TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELLED = {word: float(place) for place, word in enumerate(_SMALL, 1)}
_SPELLED |= {word: 10.0 * place for place, word in enumerate(_TENS, 3)}
_SPELLED |= {"hundred": 100.0, "dozen": 12.0, "half": 0.5}
_MAGNITUDES = {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
               "bn": 1e9, "mn": 1e6, "k": 1e3, "m": 1e6}  # fmt: skip

_DIGITS = r"(?:\d{1,3}(?:[,\u00a0\u202f’']\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)*)[½¼¾]?|[½¼¾]"
_WORDED = rf"(?:{'|'.join(sorted(_SPELLED, key=len, reverse=True))})"
_NUMBER = rf"(?:(?<![\w.,])(?:{_DIGITS})|\b(?:(?:a |an )?{_WORDED})\b)"
_TIMES = r"(?: (?:hundred|thousand|million|billion|trillion|dozen|bn|mn)\b|(?:bn|mn|k)\b)"
_AMOUNT = rf"{_NUMBER}(?:{_TIMES})*"
_SIGN = r"(?:(?<![\w.,)\]])[-−](?=\d)|\bminus (?=\d))"
_BETWEEN = rf"\b[Bb]etween {_SIGN}?{_AMOUNT} and {_SIGN}?{_AMOUNT}"
_RANGE = rf"(?:{_BETWEEN}|{_SIGN}?(?:{_AMOUNT}(?:\s?[-–×x]\s?| to | or | by )){{0,2}}{_AMOUNT})"
"""A number with its sign, or several with what stands between them: a part of these would be another value."""

_UNITS: dict[str, dict[str, float]] = {
    "length": {
        r"km|kilomet(?:re|er)s?": 1e3, r"m|met(?:re|er)s?": 1.0, r"cm|centimet(?:re|er)s?": 1e-2,
        r"mm|millimet(?:re|er)s?": 1e-3, r"mi|miles?": 1609.3, r"ft|foot|feet": 0.3048, r"inch(?:es)?": 0.0254,
        r"yards?|yd": 0.9144,
    },
    "mass": {
        r"kg|kilos?|kilogram(?:me)?s?": 1e3, r"g|grams?|grammes?": 1.0, r"mg|milligrams?": 1e-3, r"t|tonn?e?s": 1e6,
        r"lbs?": 453.6, r"pounds?": 453.6, r"oz|ounces?": 28.3,
    },
    "volume": {
        r"l|lit(?:re|er)s?": 1.0, r"dl|decilit(?:re|er)s?": 0.1, r"cl": 0.01, r"ml|millilit(?:re|er)s?": 1e-3,
        r"gallons?": 3.785, r"pints?": 0.568, r"cups?": 0.24, r"tablespoons?|tbsp": 0.015, r"teaspoons?|tsp": 0.005,
        r"m³|cubic met(?:re|er)s?": 1e3,
    },
    "duration": {
        r"s|secs?|seconds?": 1.0, r"min|mins|minutes?": 60.0, r"h|hrs?|hours?": 3600.0, r"days?": 86400.0,
        r"nights?": 86400.0, r"weeks?": 604800.0, r"months?": 2.63e6, r"years?": 3.156e7, r"decades?": 3.156e8,
        r"centur(?:y|ies)": 3.156e9,
    },
    "temperature": {r"°\s?C|degrees? Celsius": 1.0, r"°\s?F": 0.55, r"degrees?|°": 1.0},
    "power": {r"kW|kilowatts?": 1e3, r"MW|megawatts?": 1e6, r"GW": 1e9, r"W|watts?": 1.0, r"hp|horsepower": 735.0},
    "energy": {r"kWh": 3.6e6, r"Wh": 3.6e3, r"MWh": 3.6e9, r"kJ": 1e3, r"J|joules?": 1.0, r"k?cal|calories": 4.2e3},
    "voltage": {r"kV": 1e3, r"V|volts?": 1.0, r"mV": 1e-3},
    "current": {r"A|amps?|amperes?": 1.0, r"mA": 1e-3},
    "force": {r"kN": 1e3, r"N|newtons?": 1.0},
    "pressure": {r"bars?": 1e5, r"kPa": 1e3, r"MPa": 1e6, r"Pa": 1.0, r"psi": 6895.0},
    "frequency": {r"kHz": 1e3, r"MHz": 1e6, r"GHz": 1e9, r"Hz": 1.0},
    "speed": {r"km/h|kmh|kph": 1.0, r"mph|miles (?:an|per) hour": 1.609, r"m/s": 3.6, r"knots?": 1.852},
    "area": {r"km²|sq(?:uare)? ?(?:km|kilomet(?:re|er)s?)": 1e6, r"m²|sq(?:uare)? ?(?:m|met(?:re|er)s?)": 1.0,
             r"ha|hectares?": 1e4, r"acres?": 4047.0, r"square miles?": 2.59e6, r"sq(?:uare)? ?(?:ft|feet)": 0.093},
    "data": {r"TB": 1e12, r"GB": 1e9, r"MB": 1e6, r"kB|KB": 1e3},
    "sound": {r"dB|decibels?": 1.0},
    "percent": {r"%|percent|per cent": 1.0},
    "money": {
        r"euros?|EUR|€": 1.0, r"dollars?|USD|\$": 1.0, r"pounds?|GBP|£": 1.0, r"cents?|pence": 0.01, r"kr\.?": 1.0,
        r"crowns?|kron(?:er|or|a)|SEK|NOK|DKK|CZK": 1.0, r"francs?|CHF": 1.0, r"yen|JPY|¥": 1.0, r"rupees?|INR|₹": 1.0,
        r"z[łl]otys?|PLN|roubles?|rubles?|liras?|pesos?|shillings?|marks|guilders?|florins?": 1.0,
    },
}  # fmt: skip
_CURRENCY = r"(?:US\$|[$€£¥₹]|(?:EUR|USD|GBP|CHF|SEK|NOK|DKK)\s)"
_PER = (
    r"(?: (?:per|a|an|each|every) "
    r"(?:metre|meter|person|head|night|day|week|month|year|hour|kilo|kilogram|litre|km|kg|m)\b)?"
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it stands in a sentence: its kind, and its size in the kind's base unit, None where it has none.

    `kind` is "date", "clock", "number", "money" or a measure such as "length".
    """

    kind: str
    text: str
    start: int
    end: int
    size: float | None = None


def _unit_pattern(units: dict[str, float]) -> str:
    return "|".join(sorted(units, key=len, reverse=True))


_BEFORE = re.compile(
    rf"{_CURRENCY}\s?({_DIGITS})(?:{_TIMES}|m\b)?(?:\s?[-–]\s?{_CURRENCY}?(?:{_DIGITS})(?:{_TIMES})?)?"
)
_PER_WHAT = re.compile(_PER)
_ANY_UNIT = "|".join(unit for units in _UNITS.values() for unit in units)
_ANY_MEASURE = re.compile(rf"{_RANGE}[\s\u00a0-]?(?:{_ANY_UNIT})(?![\w²³/]|°)")
"""In a sentence without it none of some 90 patterns finds anything, so they need not look."""

_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_SHORT_MONTH = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
_ANY_MONTH = rf"(?:{MONTH}|{_SHORT_MONTH})"
_DATES = re.compile(
    rf"\b(?:{_WEEKDAY},? (?:the )?)?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_ANY_MONTH}(?:,? \d{{4}})?(?!\w)"
    rf"|\b(?:{_WEEKDAY},? )?{_ANY_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?![\w:])"
    rf"|\b{_ANY_MONTH},? \d{{4}}\b|\b(?<!\d\.)\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b|\b\d{{4}}-\d{{2}}-\d{{2}}\b"
    rf"|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b|\b(?:1[0-9]|20)\d0s\b|(?<![\d.,:])(?:1[0-9]|20)\d\d(?![\d:%°]|[.,]\d)"
    rf"|\b(?:every |each )?{_WEEKDAY}\b|\b{MONTH}\b"
)
_CLOCKS = re.compile(
    r"(?<![\d:.])\d{1,2}[:.]\d{2} ?[ap]\.?m\b\.?|(?<![\d:.])\d{1,2}:\d{2}(?![\d:])(?: h(?:ours)?\b)?"
    r"|\b\d{1,2} ?[ap]\.?m\b\.?|\b\d{1,2} o[’']clock\b|\bnoon\b|\bmidnight\b",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?:{_BETWEEN}|{_SIGN}?(?:(?<!from ){_AMOUNT}(?: to | or |[-–]))?{_AMOUNT})(?![\w%°])")
_JOINS = re.compile(r",? (?:at |on |um |from )?")
_SPANS = re.compile(r" (?:to|or) |\s?[-–]\s?")
_ENUMERATES = re.compile(r",? ?(?:and |or )?(?:at |on |in )?")


def values_in(sentence: str) -> list[Value]:
    """The values in order; what one kind has taken no other takes. Dates and times that stand together are one."""
    taken: list[Value] = []

    def take(value: Value) -> None:
        if all(value.end <= other.start or value.start >= other.end for other in taken):
            taken.append(value)

    for found in (_dates_in(sentence), _money_in(sentence), _measures_in(sentence), _numbers_in(sentence)):
        for value in sorted(found, key=lambda value: (value.start, value.start - value.end)):
            take(value)
    return _compounds(sentence, sorted(taken, key=lambda value: value.start))


def _dates_in(sentence: str) -> Iterator[Value]:
    for kind, pattern in (("clock", _CLOCKS), ("date", _DATES)):
        for match in pattern.finditer(sentence):
            text = match[0]
            if _is_number_of_things(sentence, match):
                continue
            year = YEAR.search(text)
            yield Value(kind, text, match.start(), match.end(), float(year[0]) if year else _clock(text))


_COUNTED_BEHIND = re.compile(r" ?(?:%|euros?|dollars?|pounds?|people|employees|metres|meters|miles|crowns|km|kg|m)\b")


def _is_number_of_things(sentence: str, match: re.Match[str]) -> bool:
    """Whether what looks like a year counts something: "1200 people"."""
    return YEAR.fullmatch(match[0]) is not None and _COUNTED_BEHIND.match(sentence, match.end()) is not None


def _clock(text: str) -> float | None:
    match = re.match(r"(\d{1,2})(?:[:.](\d{2}))?\s?([ap])?", text)
    if match is None:
        return None
    hour = int(match[1]) % 12 + 12 if match[3] == "p" else int(match[1])
    return hour + int(match[2] or 0) / 60


def _money_in(sentence: str) -> Iterator[Value]:
    for match in _BEFORE.finditer(sentence):
        end = _per(sentence, match.end())
        text = sentence[match.start() : end]
        size = amount(re.sub(rf"^{_CURRENCY}\s?", "", match[0]))
        yield Value("money", text, match.start(), end, size)


@lru_cache(maxsize=1)
def _measures() -> list[tuple[str, float, re.Pattern[str]]]:
    """The kind, the factor and the pattern of each unit. To compile them takes a quarter of a second."""
    return [
        (kind, factor, re.compile(rf"({_RANGE})([\s\u00a0-]?)(?:{unit})(?![\w²³/]|°)"))
        for kind, units in _UNITS.items()
        for unit, factor in units.items()
    ]


def _measures_in(sentence: str) -> Iterator[Value]:
    if _ANY_MEASURE.search(sentence) is None:
        return
    for kind, factor, pattern in _measures():
        for match in pattern.finditer(sentence):
            if kind == "mass" and "pound" in match[0] and not _WEIGHS.search(sentence):
                continue
            size = amount(match[1])
            end = _per(sentence, match.end()) if kind == "money" else match.end()
            yield Value(
                kind, sentence[match.start() : end], match.start(), end, None if size is None else size * factor
            )


_WEIGHS = re.compile(r"\bweigh|\bheav|\bmass\b|\blift", re.IGNORECASE)
"""Where pounds are no money."""


def _per(sentence: str, end: int) -> int:
    match = _PER_WHAT.match(sentence, end)
    return match.end() if match else end


def _numbers_in(sentence: str) -> Iterator[Value]:
    for match in _BARE.finditer(sentence):
        if not re.fullmatch(r"one|half", match[0], re.IGNORECASE):
            yield Value("number", match[0], match.start(), match.end(), amount(match[0]))


def amount(text: str) -> float | None:
    """The number that a text says, the last one of a range; None for none.

    >>> amount("1.2 million"), amount("4,500"), amount("2,2"), amount("three"), amount("-18")
    (1200000.0, 4500.0, 2.2, 3.0, -18.0)
    """
    numbers = re.findall(rf"{_DIGITS}|{_WORDED}", text.lower())
    if not numbers:
        return None
    last = numbers[-1]
    factors = re.findall(
        r"\b(?:dozen|hundred|thousand|million|billion|trillion)\b|(?<=\d)(?:bn|mn|k)\b| (?:bn|mn)\b", text
    )
    size = _size_of(numbers[-1])
    if last in _MAGNITUDES and len(numbers) > 1:
        size = _size_of(numbers[-2])
    for factor in factors:
        if factor.strip() != last or len(numbers) > 1:
            size *= _MAGNITUDES[factor.strip()]
    return -size if _NEGATIVE.match(text) and len(numbers) == 1 else size


_NEGATIVE = re.compile(r"[-−]|minus ")


def _size_of(number: str) -> float:
    if number in _SPELLED:
        return _SPELLED[number]
    half = {"½": 0.5, "¼": 0.25, "¾": 0.75}.get(number[-1], 0.0)
    digits = number.rstrip("½¼¾")
    if not digits:
        return half
    if re.fullmatch(r"\d{1,3}(?:[,\u00a0\u202f’']\d{3})+(?:\.\d+)?", digits):
        plain = re.sub(r"[^\d.]", "", digits)
    elif digits.count(",") == 1 and "." not in digits:
        plain = digits.replace(",", ".")  # 2,2 kW
    else:
        last = max(digits.rfind("."), digits.rfind(","), 0)
        plain = re.sub(r"[.,]", "", digits[:last]) + digits[last:]
    return float(plain.replace(",", ".")) + half


_WHOLE_KINDS = frozenset(("date", "clock", "number", "money", "percent"))
"""Kinds of which two that stand together are two."""
_BEFORE_FINER = re.compile(r" |,? and ")


def _compounds(sentence: str, values: list[Value]) -> list[Value]:
    """The values, with those joined that are one: "1m 20cm", "2 hours and 30 minutes", a date and its time of day."""
    joined: list[Value] = []
    for value in values:
        one = _as_one(sentence, joined[-1], value) if joined else None
        if one is None:
            joined.append(value)
        else:
            joined[-1] = one
    return joined


def _as_one(sentence: str, last: Value, value: Value) -> Value | None:
    """Two values that follow each other as one; None if they are two."""
    gap, whole = sentence[last.end : value.start], sentence[last.start : value.end]
    if _is_finer(value, last) and _BEFORE_FINER.fullmatch(gap):
        return Value(value.kind, whole, last.start, value.end, (last.size or 0.0) + (value.size or 0.0))
    is_range = value.kind == last.kind and value.kind not in ("date", "clock", "number") and _SPANS.fullmatch(gap)
    if is_range and not sentence[: last.start].endswith("from "):  # "rose from 5 km to 7 km"
        return Value(value.kind, whole, last.start, value.end, value.size)
    if {last.kind, value.kind} == {"date", "clock"} and _JOINS.fullmatch(gap):
        return Value("date", whole, last.start, value.end, last.size)
    return None


def _is_finer(value: Value, last: Value) -> bool:
    """Whether a measure goes on in a smaller unit, behind one that is no range."""
    if value.kind != last.kind or value.kind in _WHOLE_KINDS or value.size is None or last.size is None:
        return False
    return value.size < last.size and re.search(r"[-–]", last.text) is None


def enumerated(sentence: str, values: list[Value]) -> list[Value]:
    """The values, with those as one that a sentence lists: "at 08:30, at 13:00 and at 17:45"."""
    listed: list[Value] = []
    for value in values:
        last = listed[-1] if listed else None
        if last and last.kind == value.kind and _ENUMERATES.fullmatch(sentence[last.end : value.start]):
            listed[-1] = Value(value.kind, sentence[last.start : value.end], last.start, value.end)
        else:
            listed.append(value)
    return listed
