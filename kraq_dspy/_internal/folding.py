"""Folds letters so that texts and questions meet whatever their case: one place for all who compare words.

>>> folded("KANTİN AÇILIR") == folded("kantin açılır"), folded("ΠΟΤΕ ΑΝΟΙΓΕΙ ΟΔΟΣ") == folded("πότε ανοίγει οδός")
(True, True)
"""

import re
import unicodedata

_ACCENTS = re.compile(r"(?<=[a-zα-ω])[\u0300-\u036f]+")
"""Marks on Latin and Greek letters, which capitals are often written without."""
_OF_ITS_OWN = str.maketrans({"ı": "i", "ſ": "s"})
"""The dotless i of Turkish, whose capital is that of "i" elsewhere."""


def folded(text: str) -> str:
    """The text in small letters, without accents on Latin and Greek letters; "ß" is "ss", a final sigma a sigma."""
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", spread)).translate(_OF_ITS_OWN)
