"""Writes an equation of an office file (OMML; ECMA-376, part 1, section 22.1) on one line.

What has several parts gets round brackets where a reader would else take it apart: (a+b)/c, √(x+1), x^(n-1).
"""

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.zipped import local_name

_ATOM = re.compile(r"\w+|\([^()]*\)|\W")
_FORMS = {
    "f": {"num": "{}", "den": "/{}"},
    "sSup": {"e": "{}", "sup": "^{}"},
    "sSub": {"e": "{}", "sub": "_{}"},
    "sSubSup": {"e": "{}", "sub": "_{}", "sup": "^{}"},
    "sPre": {"sub": "_{}", "sup": "^{}", "e": "{}"},
    "rad": {"sign": "{}", "deg": "[{}]", "e": "{}"},
    "nary": {"chr": "{}", "sub": "_{}", "sup": "^{}", "e": " {}"},
    "limLow": {"e": "{}", "lim": "_{}"},
    "limUpp": {"e": "{}", "lim": "^{}"},
    "acc": {"e": "{}", "chr": "{}"},
    "bar": {"e": "{}", "sign": "{}"},
    "d": {"begChr": "{}", "e": "{}", "endChr": "{}"},
    "m": {"mr": "[{}]"},
    "mr": {"e": "[{}]"},
    "eqArr": {"e": "{}"},
}
"""How the parts of each kind of element are written, in order; what is none of these is written as its parts are."""
_LISTS = ("d", "m", "mr", "eqArr")
_SIGNS = {
    "rad": {"sign": "√"},
    "nary": {"chr": "∫"},
    "acc": {"chr": "\u0302"},
    "bar": {"sign": "\u0305"},
    "d": {"begChr": "(", "endChr": ")"},
}
"""Signs that an element has unless it names others."""


def linear(element: ElementTree.Element) -> str:
    """The equation as text.

    >>> m = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    >>> b2 = "<m:sSup><m:e><m:r><m:t>b</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    >>> linear(ElementTree.fromstring(f"<m:oMath {m}><m:r><m:t>a</m:t></m:r>{b2}</m:oMath>"))
    'a b^2'
    """
    return re.sub(r"\s+", " ", _joined(map(_part, element))).strip()


def _joined(parts: Iterable[str]) -> str:
    """Factors get a space between them, so that a and b^2 do not become the name ab."""
    text = ""
    for part in parts:
        is_factor = bool(text) and bool(part) and text[-1].isalnum() and part[0].isalnum()
        text += (" " if is_factor else "") + part
    return text


def _part(element: ElementTree.Element) -> str:
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    if name not in _FORMS:
        return linear(element)

    texts = dict(_SIGNS.get(name, {}))
    for child in element:
        part = local_name(child)
        if part.endswith("Pr"):
            texts |= {local_name(sign): next(iter(sign.attrib.values()), "") for sign in child}
        else:
            text = _part(child) if part in _FORMS else linear(child)
            text = text if name in _LISTS else _closed(text)
            texts[part] = f"{texts[part]}, {text}" if part in texts else text
    return "".join(form.format(texts[part]) for part, form in _FORMS[name].items() if texts.get(part))


def _closed(text: str) -> str:
    return text if _ATOM.fullmatch(text) or not text else f"({text})"
