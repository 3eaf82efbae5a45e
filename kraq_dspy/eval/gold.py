"""Reads gold answers and names of documents in the forms that data sets write them.

>>> gold_answers({"text": ["Jonas Berg", "J. Berg"], "answer_start": [5, 5]}).answers
('Jonas Berg', 'J. Berg')
>>> gold_answers("['Jonas Berg', 'J. Berg']").answers  # as pandas writes a list
('Jonas Berg', 'J. Berg')
"""

import ast
import contextlib
import datetime
import decimal
import enum
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import EvaluationError

MISSING = frozenset(("", "nan", "NaN", "<NA>", "NaT"))
"""How tools write that there is no value."""
MISSING_IN_TABLES = frozenset(("None", "null", "NULL", "none"))
"""How they write it where a value can be nothing but text."""

_TEXTS = ("text", "texts", "value", "answer", "answers", "answer_text", "span", "spans", "short_answers", "string")
_SYNONYMS = ("aliases", "Aliases", "synonyms")
_IDS = ("id", "_id", "doc_id", "docid", "document_id", "pid", "passage_id", "title", "Title", "source")
_NUMPY = re.compile(r"\[\s*(?:'[^']*'|\"[^\"]*\")(?:\s+(?:'[^']*'|\"[^\"]*\"))+\s*\]", re.DOTALL)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_ARRAY = re.compile(r"array\((\[[^\[\]]*\])(?:,\s*dtype=[^()]*)?\)")
_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Gold:
    """`answers`, of which any is right; `items` are those of a list answer, each with its synonyms."""

    answers: tuple[str, ...] = ()
    items: tuple[tuple[str, ...], ...] = ()


def gold_answers(value: Any, *, in_table: bool = False) -> Gold:
    """The answers in a value: a text, a list, an object of SQuAD's or TriviaQA's, or one of these written as text.

    Of lists in a list each is one item of the answer, with its synonyms. `in_table` says that the value comes from a
    file in which all values are texts. Raises EvaluationError for an object whose answer is nowhere to be found.
    """
    value = _parsed(_plain(value))
    if isinstance(value, list) and len(value) >= _SEVERAL and all(isinstance(part, list) for part in value):
        items = [tuple(_texts(part, in_table)) for part in value]
        items = [item for item in items if item]
        return Gold(tuple(dict.fromkeys(answer for item in items for answer in item)), tuple(items))
    return Gold(tuple(dict.fromkeys(_texts(value, in_table))))


def document_names(value: Any, *, in_table: bool = False) -> tuple[str, ...]:
    """The ids of documents in a value: an id, a list of them, or objects that have one; () for texts in their place."""
    value = _parsed(_plain(value))
    names: list[str] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, Mapping):
            part = next((part[name] for name in _IDS if part.get(name) not in (None, "")), None)
        elif isinstance(part, list):
            part = part[0] if part else None  # HotpotQA's [title, number of the sentence]
        names += _text(part, in_table)
    return tuple(dict.fromkeys(names))


def told(value: Any) -> str:
    """An answer that is no text, as a person writes it: a whole number without decimals, a day without an hour.

    >>> told(1962.0), told(True), told(datetime.datetime(2024, 3, 5))
    ('1962', 'yes', '2024-03-05')
    """
    if isinstance(value, enum.Enum):
        return told(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | decimal.Decimal) and value == value // 1:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether there is no value: None, NaN, or an empty text or list."""
    value = _plain(value)
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or value == [] or (isinstance(value, float) and math.isnan(value))


def plain_names(names: Iterable[Any]) -> dict[str, Any]:
    """The names of columns by how they are looked for: "Expected answer" is expected_answer."""
    return {re.sub(r"[\s-]+", "_", str(name).strip().lower()): name for name in names}


def first_column(row: Mapping[Any, Any], known: Iterable[str]) -> Any:
    """The first known column that a row has a value in; "" if there is none."""
    plain = plain_names(row)
    return next((plain[name] for name in known if name in plain and not is_missing(row[plain[name]])), "")


def _texts(value: Any, in_table: bool) -> Iterable[str]:
    """Every answer in a value that was parsed."""
    if isinstance(value, Mapping):
        name = next((name for name in _TEXTS if not is_missing(value.get(name))), "")
        if name:
            return [*_texts(_plain(value[name]), in_table), *_synonyms(value, in_table)]
        if any(known in value for known in _TEXTS):
            return []  # SQuAD's for a question without an answer
        raise EvaluationError(
            f"an answer is an object with {', '.join(map(repr, list(value)[:6]))}; expected a text, a list of texts, "
            f"or an object with one of: {', '.join(_TEXTS[:4])}"
        )

    if isinstance(value, list):
        return [text for part in value for text in _texts(_plain(part), in_table)]
    return _text(value, in_table)


def _synonyms(value: Mapping[str, Any], in_table: bool) -> Iterable[str]:
    for name in _SYNONYMS:
        if name in value:
            return _texts(_plain(value[name]), in_table)
    return []


def _text(value: Any, in_table: bool) -> list[str]:
    if is_missing(value):
        return []
    text = told(value).strip()
    return [] if in_table and text in MISSING_IN_TABLES else [text]


def _plain(value: Any) -> Any:
    """Turn a value into one without types of numpy and pandas, and tuples and sets as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def _parsed(value: Any) -> Any:
    """Return what a text holds that is JSON, or a list or an object as Python, pandas or numpy
    write it; else the text."""
    if not isinstance(value, str):
        return value

    text = value.strip()
    if array := _ARRAY.fullmatch(text):
        text = array[1]
    if not text.startswith(("[", "{", "(")):
        return value
    if _NUMPY.fullmatch(text):
        return [single or double for single, double in _QUOTED.findall(text)]

    with contextlib.suppress(ValueError, RecursionError):
        return _plain(json.loads(text))
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        parsed = _plain(ast.literal_eval(_ARRAY.sub(r"\1", text)))
        if isinstance(parsed, list | dict):
            return parsed
    return value
