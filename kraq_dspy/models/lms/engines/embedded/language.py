"""Tells the language of a text by its script and its commonest words, and asks the plain question of each."""

import re
from collections.abc import Sequence

_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
}
"""In this order: Japanese has Chinese letters too."""
_WORDS = {
    "en": "the and of to for with that by from are this at be it has were an his their which",
    "es": "el la los las de del que una es en y por con su para como se fue donde lo al más",
    "de": "der die das und ist ein eine einen den dem des von mit auf zu für nicht wurde nach bei wie durch im am",
    "fr": "le la les des du une est et dans par pour qui en au aux il elle avec son sa fut a été",
}
_COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_PLAIN = {
    "en": ("What is said about {0}?", "What is said about {0} and {1}?"),
    "es": ("¿Qué se dice sobre {0}?", "¿Qué se dice sobre {0} y {1}?"),
    "de": ("Was wird zum Thema {0} gesagt?", "Was wird zum Thema {0} und {1} gesagt?"),
    "fr": ("Que dit-on sur {0} ?", "Que dit-on sur {0} et {1} ?"),
    "zh": ("关于{0}，文中说了什么？", "{0}和{1}有什么关系？"),
    "ja": ("{0}については何が書かれていますか？", "{0}と{1}にはどのような関係がありますか？"),
    "th": ("มีข้อมูลอะไรเกี่ยวกับ {0} บ้าง?", "มีข้อมูลอะไรเกี่ยวกับ {0} และ {1} บ้าง?"),
    "ar": ("ماذا قيل عن {0}؟", "ماذا قيل عن {0} و{1}؟"),
    "hi": ("{0} के बारे में क्या कहा गया है?", "{0} और {1} के बारे में क्या कहा गया है?"),
}
"""About one name, and about two that are told of together."""
_TELLING = 3  # different common words of a language that a text in it has
_SEEN = 4_000  # characters of a text by which its language is told


def language_of(text: str) -> str:
    """Two letters: the script's language, else the Latin one whose common words it has most, English where none is.

    >>> language_of("Der Zug hält in Bern und ist pünktlich.")
    'de'
    """
    text = text[:_SEEN]
    letters = sum(letter.isalpha() for letter in text)
    for language, script in _SCRIPTS.items():
        share = 0.05 if language == "ja" else 0.3
        if letters and len(script.findall(text)) >= share * letters:
            return language
    words = [word for word in re.findall(r"[^\W\d_]+", text) if word.islower()]
    counts = {language: sum(word in common for word in words) for language, common in _COMMON.items()}
    most = max(counts, key=counts.__getitem__)
    differ = len(_COMMON[most].intersection(words))
    return most if counts[most] > 2 * counts["en"] and differ >= (_TELLING if counts["en"] else 2) else "en"


def plain_question(language: str, names: Sequence[str]) -> str:
    """What is said of the first name, or of the first two; "" without any."""
    about_one, about_two = _PLAIN[language]
    if language == "de":
        names = [name.removeprefix("Der ").removeprefix("Die ").removeprefix("Das ") for name in names]
    return about_two.format(*names) if len(names) > 1 else about_one.format(*names) if names else ""
