"""Says what a point of a vector store is made of: its vector, its words weighed for BM25, and its payload as tags.

A payload {"year": 1999, "lang": ["en", "fr"]} becomes the tags `"year"=1999`, `"lang"="en"`, `"lang"="fr"`, so that one
keyword index serves every filter on every field and type: engines differ in what equality means for booleans and floats
and in how a field name with a dot is written; a tag is a string.
"""

import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kraq_dspy._internal.folding import folded
from kraq_dspy.errors import EncoderMismatchError, counted
from kraq_dspy.ports import Vectors

WordWeights = dict[int, float]
"""What each word weighs, by the word's number."""

_K1, _B, _AVERAGE_WORDS = 1.2, 0.75, 256
_STOPPED = (
    "a about above after again against all am an and any are as at be because been before being below between both but "
    "by can could did do does doing don down during each few for from further had has have having he her here hers "
    "herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off on "
    "once only or other our ours ourselves out over own same she should so some such t than that the their theirs "
    "them themselves then there these they this those through to too under until up very was we were what when where "
    "which while who whom why will with you your yours yourself yourselves"
)
_STOP_WORDS = frozenset(_STOPPED.split())
# Thai to Burmese, Khmer, and Chinese and Japanese, which write no spaces between words
_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_PARTS = re.compile(rf"({_UNSPACED}+)|((?:(?!{_UNSPACED})\w)+)")
_ENDINGS = {"ies": "y", "sses": "ss", "ing": "", "ed": "", "es": "e", "ly": "", "s": ""}
_KEPT_ENDINGS = ("ss", "us", "is")
_VOWEL = re.compile("[aeiouy]")


def words_of(text: str) -> list[str]:
    """The words of a text in order, folded: lower case, without accents, English endings and stop words.

    >>> words_of("The cats of Zürich are purring")
    ['cat', 'zurich', 'pur']
    >>> words_of("日本の首都")
    ['日本', '本の', 'の首', '首都']
    """
    words = []
    for unspaced, word in _PARTS.findall(_folded(text)):
        if unspaced:
            words += [unspaced[place : place + 2] for place in range(max(1, len(unspaced) - 1))]
        elif word not in _STOP_WORDS:
            words.append(_stem(word))
    return words


def document_weights(text: str) -> WordWeights:
    """Return what each word says about a passage: BM25's part that depends on the passage alone.

    The average length is taken for 256 words, so that a weight does not change with the other passages.
    """
    words = words_of(text)
    saturation = _K1 * (1 - _B + _B * len(words) / _AVERAGE_WORDS)
    counts = Counter(map(_number, words))
    return {word: count * (_K1 + 1) / (count + saturation) for word, count in counts.items()}


def query_weights(text: str) -> WordWeights:
    """1 for each word of a query."""
    return {_number(word): 1.0 for word in words_of(text)}


def numbers_of(words: Sequence[str]) -> list[int]:
    """The numbers under which stores keep words, as `words_of` makes them."""
    return [_number(word) for word in words]


def tags_of(payload: Mapping[str, Any]) -> list[str]:
    """One tag for each field, and one for each item of a list. Equal numbers have equal tags: 1 and 1.0."""
    return [_tag(key, item) for key, value in payload.items() for item in _items(value)]


def alternatives(filters: Mapping[str, Any] | None) -> list[list[str]]:
    """List, for each field of `filters`, the tags of which a point must have one."""
    return [[_tag(key, item) for item in _items(value)] for key, value in (filters or {}).items()]


def checked_vectors(vectors: Vectors, dimension: int, n_rows: int | None = None) -> Vectors:
    """The vectors as float32 `[n, dimension]`. Raises ValueError, or EncoderMismatchError for another dimension."""
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"Vectors have the shape {rows.shape}; expected [n, {dimension}].")
    if rows.shape[1] != dimension and len(rows):
        raise EncoderMismatchError(other_dimension("The store", dimension, rows.shape[1]))
    if n_rows is not None and len(rows) != n_rows:
        raise ValueError(f"{counted(n_rows, 'id')} but {counted(len(rows), 'vector')}.")
    if not np.isfinite(rows).all():
        raise ValueError("A vector holds a value that is not finite; the encoder that made it is at fault.")
    return rows


def unit_rows(rows: Vectors) -> Vectors:
    """L2-normalised; a row of zeros stays one."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Vectors = (rows / np.where(norms == 0, 1, norms)).astype(np.float32, copy=False)
    return scaled


def other_dimension(where: str, stored: int, dimension: int) -> str:
    return (
        f"{where} holds {stored}-dimensional vectors, and {dimension}-dimensional ones were given. "
        "Use the encoder that the index was built with, or index again with this one."
    )


def _folded(text: str) -> str:
    """Fold a word to one without case, accents and invisible characters (soft hyphens, zero-width
    spaces)."""
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", folded(text))
    return "".join(
        letter for letter in spread if not unicodedata.combining(letter) and unicodedata.category(letter) != "Cf"
    )


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """An English word without the commonest endings, so that "run", "runs" and "running" are one
    word.

    It serves retrieval as well as Porter's stemmer does (docs/decisions.md).
    """
    if len(word) <= 3 or not word.isascii():
        return word

    ending = next((ending for ending in _ENDINGS if word.endswith(ending)), "")
    stem = word.removesuffix(ending) + _ENDINGS.get(ending, "")
    keeps_s = ending == "s" and word.endswith(_KEPT_ENDINGS)
    if not keeps_s and len(stem) > 1 and _VOWEL.search(stem):
        word = stem

    if len(word) > 3:
        is_doubled = word[-1] == word[-2] and word[-1] not in "aeiou"
        if is_doubled or word.endswith("e"):
            word = word[:-1]  # love, loving; run, running
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 2 else word


@lru_cache(maxsize=1 << 16)
def _number(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _tag(key: str, value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"Cannot filter {key!r} by {value!r}; expected str, int, float, bool, or a list of them.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{json.dumps(key)}={json.dumps(value)}"
