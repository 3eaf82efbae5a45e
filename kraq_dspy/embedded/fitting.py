"""Fits what a step says to the type that a signature of somebody's own gives to its field, or says that it cannot."""

import re
from collections.abc import Sequence
from typing import Any

from kraq_dspy.errors import ModelError, quoted

NUMBER = re.compile(r"(?<![\w.,])[-−]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?(?!\w|[.,]\d)")
_OPTIONAL = re.compile(r"(?:optional|union)\[(\w{1,40})[^\]]{0,80}|(\w{1,40}) \| none", re.IGNORECASE)
_SIMPLE = ("str", "bool", "int", "float")
_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


def fitted(name: str, annotation: str, choices: Sequence[str], value: Any) -> Any:
    """`value` as the field `name` wants it, by the annotation and the choices of the prompt.

    A text gives a choice that it names alone, its only number, or the yes or no that it begins with. Raises ModelError,
    which names the field, for a type that the text does not give: nothing is guessed.

    >>> fitted("answer", "int", (), "It has 3 wheels."), fitted("answer", "Literal", ("mill", "light"), "the mill")
    (3, 'mill')
    """
    optional = _OPTIONAL.match(annotation)
    kind = _kind_of(annotation) if optional is None else (optional[1] or optional[2]).lower()
    try:
        return _of_kind(kind, annotation, choices, value)
    except ValueError as reason:
        if optional is not None and (choices or kind in _SIMPLE):
            return None
        raise ModelError(
            f"The embedded model cannot fill the field {name!r} ({annotation}): {reason}. Name a real model for this "
            "role, or make the field a text."
        ) from reason


def _kind_of(annotation: str) -> str:
    found = re.match(r"\w{0,40}", annotation)
    return found[0].lower() if found else "str"


def _of_kind(kind: str, annotation: str, choices: Sequence[str], value: Any) -> Any:
    """Raises ValueError with the reason."""
    if kind == "list":
        return _list_of(annotation, value)
    if choices:
        return _choice(choices, value)
    match kind:
        case "str":
            return value if isinstance(value, str) else str(value)
        case "bool":
            return _truth(value)
        case "int" | "float":
            return _number(kind, value)
        case "dict" if isinstance(value, dict):
            return value
    raise ValueError(f"{quoted(value)} is no such value")


def _list_of(annotation: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    inner = re.search(r"\[(\w{1,40})", annotation)
    of_what = "str" if inner is None else inner[1].lower()
    if of_what == "str":
        return [value]
    if of_what in ("int", "float"):
        numbers = [_number(of_what, found) for found in NUMBER.findall(str(value))]
        if numbers:
            return numbers
        raise ValueError(f"{quoted(value)} has no number")
    raise ValueError(f"{quoted(value)} is no list of such values")


def _choice(choices: Sequence[str], value: Any) -> Any:
    """The choice that the value is, or that its text alone names; a number where the choices are numbers."""
    text = str(value)
    named = [choice for choice in choices if choice.casefold() == text.strip(" .").casefold()]
    if not named:
        named = [each for each in choices if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text, re.IGNORECASE)]
    if len(named) != 1:
        raise ValueError(f"{quoted(value)} names {'none' if not named else 'several'} of {', '.join(choices)}")
    return int(named[0]) if all(map(str.isdecimal, choices)) else named[0]


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    first = re.match(r"\W{0,10}(\w{1,10})", str(value))
    truth = _YES_OR_NO.get(first[1].lower()) if first else None
    if truth is None:
        raise ValueError(f"{quoted(value)} says neither yes nor no")
    return truth


def _number(kind: str, value: Any) -> int | float:
    if isinstance(value, int | float):
        return int(value) if kind == "int" else float(value)

    numbers = NUMBER.findall(str(value))
    if len(set(numbers)) != 1:
        raise ValueError(f"{quoted(value)} has {'no number' if not numbers else 'several numbers'}")
    number = float(numbers[0].replace(",", "").replace("−", "-"))
    if kind == "float":
        return number
    if not number.is_integer():
        raise ValueError(f"{quoted(value)} has no whole number")
    return int(number)
