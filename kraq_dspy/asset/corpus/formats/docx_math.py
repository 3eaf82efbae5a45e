"""Writes an equation of an office file (OMML; ECMA-376, part 1, section 22.1) on one line.

What has several parts gets round brackets where a reader would else take it apart: (a+b)/c, √(x+1), x^(n-1).
"""

import re
from collections.abc import Callable
from xml.etree import ElementTree

_ATOM = re.compile(r"\w+|\([^()]*\)|\W")
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\u0307": "dot", "\u20d7": "vec"}


def linear(element: ElementTree.Element) -> str:
    """The equation as text.

    >>> m = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    >>> b2 = "<m:sSup><m:e><m:r><m:t>b</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    >>> linear(ElementTree.fromstring(f"<m:oMath {m}><m:r><m:t>a</m:t></m:r>{b2}</m:oMath>"))
    'a b^2'
    """
    return re.sub(r"\s+", " ", _joined([_part(child) for child in element])).strip()


def _joined(parts: list[str]) -> str:
    """Factors get a space between them, so that a and b^2 do not become the name ab."""
    text = ""
    for part in parts:
        is_factor = bool(text) and bool(part) and text[-1].isalnum() and part[0].isalnum()
        text += (" " if is_factor else "") + part
    return text


def _part(element: ElementTree.Element) -> str:
    name = _name(element)
    if name == "t":
        return element.text or ""
    if name == "r":
        return "".join(child.text or "" for child in element if _name(child) == "t")
    if name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name, linear)
    return write(element)


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _inside(element: ElementTree.Element, part: str) -> str:
    """The first child of a name as text; "" without any."""
    child = next((child for child in element if _name(child) == part), None)
    return "" if child is None else linear(child)


def _all_inside(element: ElementTree.Element, part: str) -> list[str]:
    return [linear(child) for child in element if _name(child) == part]


def _low(element: ElementTree.Element) -> str:
    return f"_{_closed(_inside(element, 'sub'))}"


def _high(element: ElementTree.Element) -> str:
    return f"^{_closed(_inside(element, 'sup'))}"


def _base(element: ElementTree.Element) -> str:
    return _closed(_inside(element, "e"))


def _fraction(element: ElementTree.Element) -> str:
    return f"{_closed(_inside(element, 'num'))}/{_closed(_inside(element, 'den'))}"


def _root(element: ElementTree.Element) -> str:
    degree, body = _inside(element, "deg"), _inside(element, "e")
    return f"√[{degree}]({body})" if degree else f"√{_closed(body)}"


def _limit(element: ElementTree.Element) -> str:
    mark = "_" if _name(element) == "limLow" else "^"
    return f"{_inside(element, 'e')}{mark}{_closed(_inside(element, 'lim'))}"


def _accent(element: ElementTree.Element) -> str:
    sign = _property(element, "chr", "\u0302")
    return f"{_ACCENTS.get(sign, sign)}({_inside(element, 'e')})"


def _matrix(element: ElementTree.Element) -> str:
    rows = (", ".join(linear(cell) for cell in row) for row in element if _name(row) == "mr")
    return f"[{'; '.join(rows)}]"


def _nary(element: ElementTree.Element) -> str:
    sign = _property(element, "chr", "∫")
    low = _low(element) if _inside(element, "sub") else ""
    high = _high(element) if _inside(element, "sup") else ""
    return f"{sign}{low}{high} {_inside(element, 'e')}"


def _in_brackets(element: ElementTree.Element) -> str:
    between = _property(element, "sepChr", "|")
    return (
        _property(element, "begChr", "(") + between.join(_all_inside(element, "e")) + _property(element, "endChr", ")")
    )


def _property(element: ElementTree.Element, name: str, default: str) -> str:
    for properties in element:
        if properties.tag.endswith("Pr"):
            for each in properties:
                if _name(each) == name:
                    return next(iter(each.attrib.values()), "")
    return default


def _closed(text: str) -> str:
    return text if _ATOM.fullmatch(text) or not text else f"({text})"


_WRITERS: dict[str, Callable[[ElementTree.Element], str]] = {
    "f": _fraction,
    "sSup": lambda element: _base(element) + _high(element),
    "sSub": lambda element: _base(element) + _low(element),
    "sSubSup": lambda element: _base(element) + _low(element) + _high(element),
    "sPre": lambda element: _low(element) + _high(element) + _inside(element, "e"),
    "rad": _root,
    "nary": _nary,
    "d": _in_brackets,
    "func": lambda element: f"{_inside(element, 'fName')} {_inside(element, 'e')}",
    "limLow": _limit,
    "limUpp": _limit,
    "acc": _accent,
    "bar": lambda element: f"bar({_inside(element, 'e')})",
    "m": _matrix,
    "eqArr": lambda element: "; ".join(_all_inside(element, "e")),
}
"""How each kind of element is written; what is none of these is written as its parts are."""
