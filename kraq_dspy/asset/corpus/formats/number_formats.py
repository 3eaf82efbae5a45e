"""Writes the numbers of a sheet by their number formats (ECMA-376, part 1, section 18.8.30).

A number has the decimals, signs and units of its format, a date or time is written as ISO 8601 has it.

>>> shown(0.125, "0.0%"), shown(26 / 24, "[h]:mm"), shown(-1234.5, '#,##0.00 "kr"'), shown(45356, "d mmm yyyy")
('12.5%', '26:00', '-1,234.50 kr', '2024-03-05')
"""

import datetime
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 17: "yyyy-mm", 22: "yyyy-mm-dd h:mm",
    **dict.fromkeys((14, 15, 16), "yyyy-mm-dd"), **dict.fromkeys((18, 19, 20, 21), "h:mm"), 37: "#,##0", 38: "#,##0",
    39: "#,##0.00", 40: "#,##0.00", **dict.fromkeys((45, 46, 47), "[h]:mm"),
}  # fmt: skip
"""Formats that a file names by number alone; the others are plain numbers."""

_FIRST_SECTION = re.compile(r'(?:"[^"]*"|\\.|\[[^][]*\]|[^;])*', re.DOTALL)
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^][-]*+)[^][]*\]|\[(?P<elapsed>h+|m+|s+)\]|\[[^][]*\]'
    r"|_.|\*.|AM/PM|A/P|(?P<general>General|@)|(?P<power>E[+-]0+)|(?P<field>y+|m+|d+|h+|s+|e+)"
    r"|(?P<digits>[0#?][0#?,.]*|\.[0#?]+)|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)


def shown(value: float, code: str, *, from_1904: bool = False) -> str:
    """`value` by the first section of the format `code`: a negative number has a minus. "" where that shows nothing.

    `from_1904` says that days count from 1904, as on old Macs.
    """
    tokens = _parsed(code or "General")
    fields = {text[0].lower() for kind, text in tokens if kind == "field"}
    if any(kind == "elapsed" for kind, _ in tokens):
        return _elapsed(value)
    return _as_date(value, fields, from_1904=from_1904) if fields else _as_number(value, tokens)


def plain(value: float) -> str:
    """15 digits, as a sheet keeps them: 0.3 and not 0.30000000000000004."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else format(value, ".15g")


@lru_cache(maxsize=1000)
def _parsed(code: str) -> list[tuple[str, str]]:
    """The parts of the first section: their kinds and texts."""
    section = _FIRST_SECTION.match(code)
    matches = _TOKEN.finditer(section[0] if section else "")
    return [(match.lastgroup, match[match.lastgroup]) for match in matches if match.lastgroup]


def _as_number(value: float, tokens: list[tuple[str, str]]) -> str:
    pattern = "".join(text for kind, text in tokens if kind in ("digits", "power"))
    percents = tokens.count(("literal", "%"))
    is_plain = ("literal", "/") in tokens or not pattern  # a fraction, or a number as it is
    number = plain(value) if is_plain else _digits(value * 100**percents, pattern)

    sign = "-" if number.startswith("-") else ""
    text = ""
    for kind, written in tokens:
        if kind in ("digits", "general"):
            text, number = text + number.removeprefix("-"), ""
        elif kind != "power" and not (is_plain and kind == "literal"):
            text += written
    return sign + text.strip()


def _digits(value: float, pattern: str) -> str:
    pattern, _, power = pattern.upper().partition("E")
    whole, _, decimals = pattern.partition(".")
    scaled = len(decimals or whole) - len((decimals or whole).rstrip(","))  # each shows thousands as ones
    needed, possible = decimals.count("0"), len(decimals.replace(",", ""))
    if power:
        return f"{value:.{possible}E}"

    value /= 1000**scaled
    exact = Decimal(plain(value)).quantize(Decimal(1).scaleb(-possible), ROUND_HALF_UP) if abs(value) < 1e15 else value
    comma = "," if "," in whole.rstrip(",") else ""
    before, _, after = f"{exact + 0:{comma}.{possible}f}".partition(".")  # without the sign of a zero
    before = before.zfill(whole.count("0") + before.startswith("-"))
    after = after[:needed] + after[needed:].rstrip("0")
    return f"{before}.{after}" if after else before


def _as_date(value: float, fields: set[str], *, from_1904: bool) -> str:
    """1900 had no 29th of February, but Excel counts it as day 60."""
    start = datetime.datetime(1904, 1, 1) if from_1904 else datetime.datetime(1899, 12, 30 if value >= 60 else 31)
    try:
        moment = start + datetime.timedelta(seconds=round(value * 86400))
    except OverflowError:
        return plain(value)

    form = "%Y-%m-%d" if "d" in fields else "%Y-%m" if "m" in fields else "%Y"
    if "h" in fields or "s" in fields:
        clock = "%H:%M:%S" if moment.second else "%H:%M"
        form = clock if fields.isdisjoint("yed") else f"{form} {clock}"
    return moment.strftime(form)


def _elapsed(value: float) -> str:
    minutes, seconds = divmod(round(abs(value) * 86400), 60)
    sign = "-" if value < 0 else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
