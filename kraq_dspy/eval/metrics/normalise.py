"""Makes answers comparable before they are matched."""

import re
import unicodedata

# Scripts that put no space between words: each character counts as a word, as CMRC 2018's own scorer does for Chinese
# (Cui et al., 2019). CJK ideographs, kana, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII_SYMBOLS = frozenset("$+<=>^`|~")
_FUNCTION_WORDS = """and are as at be been by can for from has have he her his in into is it its of on or she such that
their them they this through to was were which who will with within while also not but more most than these those there
during about over under between both each other many"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "es", "ed", "s")


def normalise_answer(text: str) -> str:
    """Lower case, no punctuation nor English articles, single spaces (Rajpurkar et al., 2016; KRAQ thesis 4.2.1).

    On ASCII text this is SQuAD's normalisation. Beyond it: compatibility forms are unified (NFKC: full-width letters,
    ligatures), all Unicode punctuation counts, and characters of scripts without spaces (Chinese, Japanese, Thai, ...)
    are set apart, so that each is a word of its own. Unlike SQuAD's, a text that is nothing but an article ("The") or
    punctuation ("+") is kept, because an empty gold answer would match everything. Blank text gives "".
    """
    lowered = unicodedata.normalize("NFKC", text).lower()
    unpunctuated = "".join(character for character in lowered if not _is_punctuation(character))
    spaced = _UNSPACED_CHARACTER.sub(r" \g<0> ", unpunctuated)
    for candidate in (_ARTICLE.sub(" ", spaced), spaced, lowered):
        words = candidate.split()
        if words:
            return " ".join(words)
    return ""


def answer_words(text: str) -> list[str]:
    """The words of the normalised text; for scripts without spaces, the characters."""
    return normalise_answer(text).split()


def content_words(text: str) -> set[str]:
    """Normalised words without function words and English endings."""
    return {_stem(word) for word in answer_words(text) if word not in FUNCTION_WORDS}


def has_unspaced_script(text: str) -> bool:
    """Whether some of the text is in a script that puts no space between words."""
    return _UNSPACED_CHARACTER.search(text) is not None


def split_words(text: str) -> list[str]:
    """Runs of letters and digits, lower case, punctuation dropped; characters of scripts without spaces stand alone.

    Keeps articles: for metrics of word order (ROUGE, METEOR), where they count.
    """
    spaced = _UNSPACED_CHARACTER.sub(r" \g<0> ", unicodedata.normalize("NFKC", text).lower())
    return re.findall(r"(?:[^\W_]|(?<=\w)[\u0300-\u036f])+", spaced)


def _is_punctuation(character: str) -> bool:
    return character in _ASCII_SYMBOLS or unicodedata.category(character).startswith("P")


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return word
