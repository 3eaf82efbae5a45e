"""Numbers the items of ordered lists as a browser does, so that "step 5" of a text leads somewhere."""

from collections.abc import Mapping
from dataclasses import dataclass

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(slots=True)
class NumberedList:
    """An open `<ol>`, with the number of its next item."""

    number: int
    step: int = 1
    style: str = "1"

    def next(self, value: str) -> str:
        """The number before the next item, whose attribute value is this."""
        given_number = _integer(value)
        number = self.number if given_number is None else given_number
        self.number = number + self.step
        return written_number(number, self.style) + ". "


def begin_list(attributes: Mapping[str, str]) -> NumberedList | None:
    """The list that these attributes of an `<ol>` begin; None where its style shows no numbers, and for one that counts
    down from its own length."""
    style = attributes.get("style", "").replace(" ", "").lower()
    if "list-style:none" in style or "list-style-type:none" in style:
        return None

    start = _integer(attributes.get("start", ""))
    is_reversed = "reversed" in attributes
    if is_reversed and start is None:
        return None
    return NumberedList(1 if start is None else start, -1 if is_reversed else 1, attributes.get("type", "1"))


def _integer(value: str) -> int | None:
    value = value.strip()
    return int(value) if value.removeprefix("-").isdecimal() and len(value) < 10 else None


def written_number(number: int, style: str) -> str:
    if style in ("a", "A") and number > 0:
        letters = _letters(number)
        return letters.upper() if style == "A" else letters
    if style in ("i", "I") and 0 < number < 4000:
        numeral = _roman(number)
        return numeral.upper() if style == "I" else numeral
    return str(number)


def _letters(number: int) -> str:
    """a to z, then aa, ab, ..."""
    letters = ""
    while number:
        number, place = divmod(number - 1, 26)
        letters = chr(ord("a") + place) + letters
    return letters


def _roman(number: int) -> str:
    numeral = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        numeral += letters * count
    return numeral
