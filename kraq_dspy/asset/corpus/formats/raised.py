"""Writes raised and lowered characters on the line, so that 1987 with a note 3 does not become 19873, nor 10 to the
sixth power 106.

>>> raised("3", "founded in 1987"), raised("6", "holds 10"), raised("st", "the 1"), lowered("2", "CO")
(' [3]', '^6', 'st', '2')
"""

import re
from collections.abc import Sequence

CONTEXT = 40  # characters before and behind that are looked at

_ORDINALS = frozenset(
    "st nd rd th e er ère ere re eme ème me d de nde nds os as ste ª º º. o. a.".split()  # noqa: SIM905
)
_SIGNS = {"tm": "™", "sm": "℠"}
_UNITS = frozenset(
    "m mm cm dm km in ft yd mi mc nm µm μm s ms min h hr hm dam ha inch foot feet yards mile miles sec "  # noqa: SIM905
    "metre metres meter meters mol log ln exp sin cos tan".split()
)
_POWERS_OF = frozenset(("2", "10"))
_VARIABLES = frozenset("nxkijtmT")
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d.,]*$")
_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]+$")
_FORMULA = re.compile(r"[=×·*+^/÷±∑√<>]|\d\s*[-−]\s*\d")
_IN_BRACKETS = re.compile(r"[\[(].*[\])]", re.DOTALL)
_ELEMENT = re.compile(r"[A-Z][a-z]?(?![a-z])")
_CLOSED = re.compile(r"\(([^()]*)\)$")


def raised(text: str, before: str, after: str = "", *, is_link: bool = False) -> str:
    """Return what stands on the line for a raised `text` between `before` and `after`.

    A note gets brackets, a power "^", an ordinal's letters stay where they are. In doubt it is a note, since "12 [3]"
    says less that is false than "12^3". `is_link` says that it leads somewhere, as notes do.
    """
    mark = text.strip()
    if not mark:
        return text
    if mark.lower() in _SIGNS:
        return _SIGNS[mark.lower()]
    if _IN_BRACKETS.fullmatch(mark):
        return _apart(mark, before)
    if not any(map(str.isalnum, mark)):
        return mark
    if is_link:
        return _apart(f"[{mark}]", before)
    if mark.isdigit() and after.startswith(("/", "⁄")):
        return f" {mark}" if before[-1:].isdigit() else mark
    if any(map(str.isdigit, mark)):
        return _raised_number(mark, before, after)
    return _raised_letters(mark, before, after)


def on_the_line(runs: Sequence[tuple[str, int]]) -> str:
    """The text of runs, each with its level: 0 on the line, above 0 raised, below 0 lowered.

    >>> on_the_line([("CO", 0), ("2", -1), (" falls by 10", 0), ("3", 1), (" tonnes", 0)])
    'CO2 falls by 10^3 tonnes'
    """
    text = ""
    for number, (piece, level) in enumerate(runs):
        after = runs[number + 1][0][:CONTEXT] if number + 1 < len(runs) else ""
        if level > 0:
            text += raised(piece, text[-CONTEXT:], after)
        else:
            text += lowered(piece, text[-CONTEXT:], after) if level < 0 else piece
    return text


def lowered(text: str, before: str, after: str = "") -> str:
    """Return what stands on the line for a lowered `text`: CO2, log2 8, 10_2."""
    mark = text.strip()
    if not mark:
        return text
    joined = f"_{mark}" if before[-1:].isdigit() and mark[0].isdigit() else mark
    return f"{joined} " if joined[-1].isdigit() and after[:1].isdigit() else joined


def _raised_number(mark: str, before: str, after: str) -> str:
    if not before or before[-1].isspace():
        is_isotope = bool(_ELEMENT.match(after)) and mark.isdigit()
        return mark if is_isotope else _apart(f"[{mark}]", before, after)
    if _is_power(mark, before):
        return f"^{mark}" if re.fullmatch(r"[-−–+]?\w+[-−+]?", mark) else f"^({mark})"
    return _apart(f"[{mark}]", before, after)


def _is_power(mark: str, before: str) -> bool:
    if mark[0] in "-−–+" or mark[-1] in "-−+":
        return True
    if number := _NUMBER.search(before):
        return number[0] in _POWERS_OF or _FORMULA.search(before[-12:]) is not None
    if word := _WORD.search(before):
        follows_digit = before[: word.start()].rstrip()[-1:].isdigit()
        is_one_letter = len(word[0]) == 1 and not before[: word.start()].endswith(("'", "’"))
        return is_one_letter or (word[0] in _UNITS and (len(word[0]) < 3 or follows_digit))
    if closed := _CLOSED.search(before):
        return _FORMULA.search(closed[1]) is not None or len(closed[1]) == 1
    return before[-1] in "])}" and _FORMULA.search(before) is not None


def _raised_letters(mark: str, before: str, after: str) -> str:
    """Write letters that are raised: a unit, an ordinal, an exponent, an abbreviation's end."""
    last = before[-1:]
    if last.isdigit():
        if mark in ("o", "°") and re.match(r"\s?[CFK]\b", after):
            return "°"
        if mark.lower() in _ORDINALS:
            return mark

    word = _WORD.search(before)
    if word and len(word[0]) <= 2:
        is_variable = len(word[0]) == 1 and word[0] != "n"
        if mark in _VARIABLES and is_variable:
            return f"^{mark}"
        if mark.islower():
            return mark  # Mme, no, Dr

    if last in _POWERS_OF and mark in _VARIABLES:
        return f"^{mark}"
    return _apart(f"[{mark}]" if len(mark) == 1 else mark, before, after)


def _apart(mark: str, before: str, after: str = "") -> str:
    """Put a space to the word before it, and to one that begins right behind it."""
    ahead = " " if before and not before[-1].isspace() else ""
    behind = " " if after[:1].isalnum() else ""
    return f"{ahead}{mark}{behind}"
