"""Tells which language a text is in: by its script, by its commonest words, and else by py3langid.

>>> language_of("Der Zug hält in Bern und ist pünktlich.")
'de'
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set as AbstractSet
from functools import lru_cache
from typing import Any

from kraq_dspy.language.vocabulary import LANGUAGES

LATIN = ("en", "de", "es", "fr", "it", "pt", "nl", "pl", "sv", "da", "no", "fi", "cs", "hu", "ro", "tr", "ca", "af")
"""Languages in Latin letters that are told apart."""
CYRILLIC = ("ru", "uk", "bg", "sr")

_SCRIPTS = {language: re.compile(letters) for language, letters in LANGUAGES["scripts"].items()}
"""None of their letters are ASCII."""
_COMMON = {language: frozenset(words.split()) for language, words in LANGUAGES["common"].items()}
_COMMON_IN: dict[str, list[str]] = {}
"""The languages in which a word is one of the commonest."""
for _language, _common in _COMMON.items():
    for _common_word in _common:
        _COMMON_IN.setdefault(_common_word, []).append(_language)
_ASKS_IN_ENGLISH = frozenset(("who", "whom", "whose", "what", "when", "where", "which", "why", "how", "does", "did"))
_LEAST_SHARE = 0.05  # of a script's letters among those of a text in it
_WORD = re.compile(r"[^\W\d_]+")
_SEEN = 4_000  # characters of a text by which its language is told
_CERTAIN_WORDS = 4  # different English words of a text that has hardly any of another language
_FOREIGN = 0.01  # share of letters with accents, up to which names account for them
_LIKELY = 0.6  # probability from which on py3langid is believed
_FEW_WORDS = 3
_ENGLISH_ALONE = frozenset(word for word in _COMMON["en"] if len(word) > 2)  # "to" and "by" are Polish, too


@lru_cache(maxsize=256)
def language_of(text: str) -> str:
    """Two letters, such as "de"; "en" for a text too short to tell, or without words."""
    text = text[:_SEEN]
    if language := _by_script_or_words(text):
        return language
    if _by_script(text) == "ru":
        return _likeliest(text, CYRILLIC) or "ru"
    return _likeliest(text, LATIN) or "en"


def language_of_most(texts: Collection[str]) -> str:
    """The language of most of the texts; "en" of none.

    The model, which takes half a second to load, is asked only if the texts that it decides could change the outcome.

    >>> language_of_most(["Der Zug hält in Bern und ist pünktlich.", "Das ist ein Fahrplan der Bahn.", "apt-get"])
    'de'
    """
    plain = Counter(filter(None, (_by_script_or_words(text[:_SEEN]) for text in texts)))
    left_open = len(texts) - plain.total()
    if plain:
        (first, count), *others = plain.most_common(2)
        if count > left_open + sum(number for _, number in others):
            return first

    counts = Counter(map(language_of, texts))
    return counts.most_common(1)[0][0] if counts else "en"


def may_be_english(text: str) -> bool:
    """Whether a text of which no language was told may be asked about in English.

    Lists of options and footers have few words; those of other languages have letters that English lacks. English
    texts have these in names alone.

    >>> may_be_english("Lake Orr lies in Harrow."), may_be_english("ZGŁASZANIE BŁĘDÓW  coreutils(1)")
    (True, False)
    >>> may_be_english("Zoë Zörblax painted the lighthouse in Marsport.")
    True
    """
    text = text[:_SEEN]
    if text.isascii():
        return True
    plain_words = [word for word in _WORD.findall(text) if word.islower()]
    if all(map(str.isascii, plain_words)) and not _ENGLISH_ALONE.isdisjoint(plain_words):
        return True

    n_letters = sum(map(str.isalpha, text))
    n_foreign = n_letters - sum(map(str.isalpha, _ascii(text)))
    if n_foreign <= _FOREIGN * n_letters:
        return True
    return len(_COMMON["en"].intersection(_WORD.findall(text))) >= _CERTAIN_WORDS


def is_english(question: str, text: str) -> bool:
    """Whether a question, which may be short, is one in English, asked of this text."""
    return language_of_question(question, text) == "en"


def language_of_question(question: str, text: str) -> str:
    """The language of a question, or, if it is too short to tell, of it and the text that it is asked of.

    The model is not asked if the commonest words of both are of one language before all others.

    >>> language_of_question("Was ist dpkg?", "Das Programm dpkg ist ein Werkzeug für Pakete.")
    'de'
    """
    if question.isupper():
        question = question.lower()
    if script := _by_script(question):
        return script
    if plain := plain_language(question, text):
        return plain
    alone = _likeliest(question, LATIN, at_least=0.85)
    return alone or language_of(f"{question} {text}")


def plain_language(question: str, text: str) -> str:
    """The language that the commonest words of both are of before all others; "" if they leave it open.

    >>> plain_language("Who mended the lamp?", "The keeper mended the lamp of the tower.")
    'en'
    """
    asked_in = _leading(_WORD.findall(question.lower()), _ASKS_IN_ENGLISH)
    of_text = _by_script(text) or _leading(_WORD.findall(text[:_SEEN].lower()))
    return asked_in if asked_in == of_text else ""


def _by_script_or_words(text: str) -> str:
    """The language that the script or the commonest words tell; "" if only the model can."""
    script = _by_script(text)
    if script == "ru":
        return ""
    if script:
        return script

    words = _WORD.findall(text)
    by_words = _by_common_words([word for word in words if word.islower()])
    if by_words is None and len(words) < _FEW_WORDS:
        return "en"
    return by_words or ""


def _by_script(text: str) -> str:
    """The language of a script that one language is written in, or one above others; "" for Latin letters."""
    if text.isascii():
        return ""
    n_letters = sum(map(str.isalpha, text))
    if len(text) - len(_ascii(text)) < _LEAST_SHARE * n_letters:
        return ""
    for language, script in _SCRIPTS.items():
        share = _LEAST_SHARE if language == "ja" else 0.3
        if n_letters and len(script.findall(text)) >= share * n_letters:
            return language
    return ""


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


def _by_common_words(words: list[str]) -> str | None:
    """The language whose commonest words say it alone; None if they leave it open."""
    counts = _counts_of_common(words)
    first, second = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    if counts[first] > 3 * counts[second] and len(_COMMON[first].intersection(words)) >= _CERTAIN_WORDS:
        return first
    return None


def _counts_of_common(words: Iterable[str]) -> dict[str, int]:
    """How many of the words are among the commonest of each language."""
    counts = dict.fromkeys(_COMMON, 0)
    for word in words:
        for language in _COMMON_IN.get(word, ()):
            counts[language] += 1
    return counts


def _leading(words: Sequence[str], english: AbstractSet[str] = frozenset()) -> str:
    """The language that most of the commonest words are of, "" for none or several; `english` words count as well."""
    counts = _counts_of_common(words)
    counts["en"] += sum(word in english for word in words)
    first, second = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return first if counts[first] > counts[second] else ""


def _likeliest(text: str, among: tuple[str, ...], at_least: float = _LIKELY) -> str:
    """Return what py3langid says; "" if it is not sure."""
    language, probability = _identifier(among).classify(text)
    return str(language) if probability >= at_least else ""


@lru_cache(maxsize=2)
def _identifier(among: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # half a second, where a text is not plainly English

    of_all = LanguageIdentifier.from_model_file(MODEL_FILE)
    of_all.set_languages(list(among))
    tables, states = (of_all.nb_ptc, of_all.nb_pc, of_all.nb_classes), (of_all.tk_nextmove, of_all.tk_output)
    return LanguageIdentifier(*tables, *states, norm_probs=True, tk_row=of_all.tk_row)  # without the other languages
