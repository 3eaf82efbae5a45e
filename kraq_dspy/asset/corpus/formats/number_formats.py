"""Writes the numbers of a sheet as its number formats show them (ECMA-376, part 1, section 18.8.30).

>>> shown(0.125, "0.0%"), shown(26 / 24, "[h]:mm:ss"), shown(1234.5, '#,##0.00 "kr"'), shown(45356, "d mmm yyyy")
('12.5%', '26:00:00', '1,234.50 kr', '5 Mar 2024')
"""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

BUILT_IN = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?",
    13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;-#,##0", 38: "#,##0;-#,##0",
    39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
    49: "@",
}  # fmt: skip
"""Formats that a file names by number alone. 14 and 22 show as the reader's country writes dates; here they are ISO."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^][-]*+)[^][]*\]|\[(?P<elapsed>h+|m+|s+)\]'
    r"|\[(?P<condition>[<>=][^][]*)\]|\[[^][]*\]|_.|\*.|(?P<clock>AM/PM|A/P)|(?P<general>General)"
    r"|(?P<power>E[+-]0+)|(?P<field>y+|m+|d+|h+|s+(?:\.0+)?|e+)|(?P<digits>[0#?][0#?,.]*|\.[0#?]+)|(?P<literal>.)",
    re.IGNORECASE | re.DOTALL,
)
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def shown(value: float, code: str, *, from_1904: bool = False) -> str:
    """`value` as the format `code` shows it. `from_1904` says that days count from 1904, as on old Macs.

    What the code's grammar does not know is a plain number.
    """
    sections = _parsed(code)
    tokens = _section_for(value, sections)
    is_negated = value < 0 and not (len(sections) > 1 and tokens is sections[1])

    if any(token.kind in ("field", "elapsed") for token in tokens):
        return _as_time(value, tokens, from_1904=from_1904)
    return _as_number(value, tokens, is_negated=is_negated)


def plain(value: float) -> str:
    """15 digits, as a sheet keeps them: 0.3 and not 0.30000000000000004."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else format(value, ".15g")


@lru_cache(maxsize=1000)
def _parsed(code: str) -> list[list[_Token]]:
    return [_tokens(section) for section in _sections(code)]


def _sections(code: str) -> list[str]:
    return re.findall(r'((?:"[^"]*"|\\.|\[[^][]*\]|[^;])*);?', code or "General", re.DOTALL)[:4] or ["General"]


def _tokens(section: str) -> list[_Token]:
    return [_Token(match.lastgroup or "", match[match.lastgroup or 0] or "") for match in _TOKEN.finditer(section)]


def _section_for(value: float, sections: list[list[_Token]]) -> list[_Token]:
    """Positive, negative and zero have sections of their own, unless sections name conditions."""
    conditions = [token for section in sections for token in section if token.kind == "condition"]
    if conditions:
        for section in sections:
            own = next((token for token in section if token.kind == "condition"), None)
            if own is None or _holds(value, own.text):
                return section
        return sections[-1]
    if value < 0 and len(sections) > 1 and sections[1]:
        return sections[1]
    if value == 0 and len(sections) > 2 and sections[2]:
        return sections[2]
    return sections[0]


def _holds(value: float, condition: str) -> bool:
    match = re.fullmatch(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+)", condition)
    if match is None:
        return True
    sign, limit = match[1], float(match[2])
    return {
        "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit, "=": value == limit,
        "<>": value != limit,
    }[sign]  # fmt: skip


def _as_number(value: float, tokens: list[_Token], *, is_negated: bool) -> str:
    if any(token.kind == "general" or token == _Token("literal", "/") for token in tokens):  # fractions, too
        return plain(value)

    pattern = "".join(token.text for token in tokens if token.kind == "digits")
    digits = ""
    if pattern:
        percents = tokens.count(_Token("literal", "%"))
        power = next((token.text for token in tokens if token.kind == "power"), "")
        digits = _digits(abs(value) * 100**percents, pattern, power)

    text = "".join(_number_pieces(value, tokens, digits)).strip()
    return f"-{text}" if is_negated and pattern and re.search(r"[1-9]", text) else text


def _number_pieces(value: float, tokens: list[_Token], digits: str) -> Iterator[str]:
    """The texts of the tokens. All digits stand where the first ones do."""
    for token in tokens:
        if token.kind == "digits":
            yield digits
            digits = ""
        elif token == _Token("literal", "@"):
            yield plain(value)
        elif token.kind in ("quoted", "escaped", "currency", "literal", "clock"):
            yield token.text


def _digits(value: float, pattern: str, power: str) -> str:
    whole, _, decimals = pattern.partition(".")
    scaled = len(decimals or whole) - len((decimals or whole).rstrip(","))  # each shows thousands as ones
    value /= 1000**scaled
    needed, possible = decimals.count("0"), len(decimals.replace(",", ""))
    if power:
        mantissa, exponent = f"{value:.{possible}E}".split("E")
        return f"{mantissa}E{exponent[0]}{exponent[1:].lstrip('0').zfill(power.count('0'))}"

    exact = Decimal(plain(value)).quantize(Decimal(1).scaleb(-possible), ROUND_HALF_UP) if value < 1e15 else value
    text = f"{exact:.{possible}f}"  # sheets round halves up
    before, _, after = text.partition(".")
    while len(after) > needed and after.endswith("0"):
        after = after[:-1]
    least = whole.count("0")
    before = before.lstrip("0").zfill(least)
    if "," in whole.rstrip(","):
        before = _with_commas(before)
    return f"{before}.{after}" if after or ("." in pattern and needed) else before or "0"


def _with_commas(digits: str) -> str:
    """A comma before every third digit from the right: "0012345" becomes "0,012,345"."""
    first = len(digits) % 3
    groups = [digits[place : place + 3] for place in range(first, len(digits), 3)]
    return ",".join([digits[:first], *groups] if first else groups)


def _as_time(value: float, tokens: list[_Token], *, from_1904: bool) -> str:
    has_fractions = any("." in token.text for token in tokens if token.kind == "field")
    seconds = round(value * 86400, 3) if has_fractions else float(round(value * 86400))
    try:
        moment = _moment(seconds, from_1904=from_1904)
    except OverflowError:
        return plain(value)

    pieces = [_time_piece(moment, seconds, tokens, place) for place in range(len(tokens))]
    sign = "-" if seconds < 0 and any(token.kind == "elapsed" for token in tokens) else ""
    return sign + "".join(pieces).strip()


def _time_piece(moment: datetime.datetime, seconds: float, tokens: list[_Token], place: int) -> str:
    token = tokens[place]
    if token.kind == "elapsed":
        return _elapsed(seconds, token.text.lower())
    if token.kind == "clock":
        return "AM" if moment.hour < 12 else "PM"
    if token.kind == "field":
        is_minute = token.text[0] in "mM" and _is_minute(tokens, place)
        has_clock = any(other.kind == "clock" for other in tokens)
        return _field(moment, token.text.lower(), seconds, is_minute=is_minute, has_clock=has_clock)
    is_shown = token.kind in ("quoted", "escaped", "currency", "literal", "digits") and token.text != "@"
    return token.text if is_shown else ""


def _moment(seconds: float, *, from_1904: bool) -> datetime.datetime:
    """1900 had no 29th of February, but Excel counts it as day 60."""
    days = seconds / 86400
    start = datetime.datetime(1904, 1, 1) if from_1904 else datetime.datetime(1899, 12, 30 if days >= 60 else 31)
    return start + datetime.timedelta(seconds=seconds)


def _elapsed(seconds: float, field: str) -> str:
    units = {"h": 3600, "m": 60, "s": 1}
    return str(int(abs(seconds) // units[field[0]])).zfill(len(field))


def _is_minute(tokens: list[_Token], place: int) -> bool:
    """Whether "m" behind an hour or before a second: it is a month elsewhere."""
    timed = [(at, token.text[0].lower()) for at, token in enumerate(tokens) if token.kind in ("field", "elapsed")]
    at = timed.index((place, "m"))
    is_behind_hour = at > 0 and timed[at - 1][1] == "h"
    is_before_second = at + 1 < len(timed) and timed[at + 1][1] == "s"
    return is_behind_hour or is_before_second


def _field(moment: datetime.datetime, field: str, seconds: float, *, is_minute: bool, has_clock: bool) -> str:
    kind, width = field[0], len(field.partition(".")[0])
    if kind in "ye":
        return str(moment.year) if width > 2 or kind == "e" else f"{moment.year % 100:02}"
    if kind == "m" and not is_minute:
        name = _MONTHS[moment.month - 1]
        return {3: name[:3], 4: name, 5: name[0]}.get(width, str(moment.month).zfill(width))
    if kind == "d":
        name = _DAYS[moment.weekday()]
        return {3: name[:3], 4: name}.get(width, str(moment.day).zfill(width))
    if kind == "h":
        hour = (moment.hour % 12 or 12) if has_clock else moment.hour
        return str(hour).zfill(width)
    if kind == "m":
        return str(moment.minute).zfill(width)
    decimals = len(field.partition(".")[2])
    second = moment.second + (seconds % 1 if decimals else 0)
    return f"{second:0{width + decimals + 1 if decimals else width}.{decimals}f}"
