"""Writes an equation of an office file (OMML; ECMA-376, part 1, section 22.1) on one line.

What has several parts gets round brackets where a reader would else take it apart: (a+b)/c, √(x+1), x^(n-1).
"""

import re
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
    name = element.tag.rpartition("}")[2]
    if name == "t":
        return element.text or ""
    if name == "r":
        return "".join(child.text or "" for child in element if child.tag.endswith("}t"))
    if name.endswith("Pr"):
        return ""

    def inside(part: str) -> str:
        found = next((child for child in element if child.tag.rpartition("}")[2] == part), None)
        return "" if found is None else linear(found)

    body = inside("e")
    if name == "f":
        return f"{_closed(inside('num'))}/{_closed(inside('den'))}"
    if name == "sSup":
        return f"{_closed(body)}^{_closed(inside('sup'))}"
    if name == "sSub":
        return f"{_closed(body)}_{_closed(inside('sub'))}"
    if name == "sSubSup":
        return f"{_closed(body)}_{_closed(inside('sub'))}^{_closed(inside('sup'))}"
    if name == "sPre":
        return f"_{_closed(inside('sub'))}^{_closed(inside('sup'))}{body}"
    if name == "rad":
        degree = inside("deg")
        return f"√[{degree}]({body})" if degree else f"√{_closed(body)}"
    if name == "nary":
        return _nary(element, inside("sub"), inside("sup"), body)
    if name == "d":
        return _in_brackets(element)
    if name == "func":
        return f"{inside('fName')} {body}"
    if name in ("limLow", "limUpp"):
        return f"{body}{'_' if name == 'limLow' else '^'}{_closed(inside('lim'))}"
    if name == "acc":
        sign = _property(element, "chr", "\u0302")
        return f"{_ACCENTS.get(sign, sign)}({body})"
    if name == "bar":
        return f"bar({body})"
    if name == "m":
        rows = [child for child in element if child.tag.endswith("}mr")]
        return "[" + "; ".join(", ".join(linear(cell) for cell in row) for row in rows) + "]"
    if name == "eqArr":
        return "; ".join(linear(child) for child in element if child.tag.endswith("}e"))
    return linear(element)


def _nary(element: ElementTree.Element, low: str, high: str, body: str) -> str:
    sign = _property(element, "chr", "∫")
    return sign + (f"_{_closed(low)}" if low else "") + (f"^{_closed(high)}" if high else "") + f" {body}"


def _in_brackets(element: ElementTree.Element) -> str:
    between = _property(element, "sepChr", "|")
    texts = [linear(child) for child in element if child.tag.endswith("}e")]
    return _property(element, "begChr", "(") + between.join(texts) + _property(element, "endChr", ")")


def _property(element: ElementTree.Element, name: str, default: str) -> str:
    for properties in element:
        if properties.tag.endswith("Pr"):
            for each in properties:
                if each.tag.rpartition("}")[2] == name:
                    return next(iter(each.attrib.values()), "")
    return default


def _closed(text: str) -> str:
    return text if _ATOM.fullmatch(text) or not text else f"({text})"
