"""Defines what a file gives: rows, each a document, and rows that cannot be one."""

import datetime
import decimal
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.boilerplate import Linked
from kraq_dspy.asset.corpus.formats.markdown_marks import without_embedded
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.label_names import label_column
from kraq_dspy.asset.scope import ACL, labels_of
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Heading, Metadata
from kraq_dspy.settings import CorpusSettings

INTEGERS = range(-(2**63), 2**63)  # what SQLite and Qdrant hold


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Names of the columns that matter, limits, and what to do where a column lacks.

    `max_bytes` bounds one text, `max_unpacked` how many times its size a compressed file may hold. `encoding` is that
    of files that are not UTF-8 and have no byte-order mark. `by_function` says that a function gives documents their
    labels, so that no name that is almost that of labels is refused.
    """

    id_column: str = "id"
    title_column: str = "title"
    text_column: str = "text"
    acl_column: str = ""
    max_bytes: int = CorpusSettings.max_bytes
    max_unpacked: int = CorpusSettings.max_unpacked
    encoding: str = ""
    by_function: bool = False
    way_out: str = (
        "Name the right one, or several with commas: --text-column NAME, or text_column in [corpus] of kraq.toml."
    )

    @property
    def named(self) -> dict[str, str]:
        """The columns of titles, ids and labels that somebody has named, by what they hold; all may be absent by
        default."""
        optional = {"title": self.title_column, "id": self.id_column}
        named = {what: column for what, column in optional.items() if column not in ("", what)}
        return named | ({"acl": self.acl_column} if self.acl_column else {})

    def row(self, values: Mapping[str, Any], key: str) -> "Row | BadRow":
        """Return what a row of these named values is."""
        return row_of(values, key, self)

    def is_header(self, columns: Iterable[str]) -> bool:
        """Whether these can be the names of the columns: one is that of the text."""
        return bool(self.own(columns).texts)

    def own(self, columns: Iterable[str]) -> "OwnColumns":
        """Tell which of these columns hold text, title and id. Where nobody has named one, other
        usual names do, too."""
        return _own_columns(self, tuple(columns))

    def too_large(self, n_bytes: int, what: str = "The text") -> str:
        return f"{what} has {n_bytes:,} bytes; the limit is {self.max_bytes:,}. Split it, or raise max_bytes."

    def missing(self, columns: Iterable[str]) -> str:
        """Tell why these columns will not do: the text is none of them. "" if it is there."""
        columns = list(columns)
        if self.own(columns).texts:
            return ""
        return f"There is no column {self.text_column!r}; there are: {_names(columns)}. {self.way_out}"

    def own_names(self, columns: Sequence[str]) -> tuple[list[str], str]:
        """The columns, each with a name of its own, and why that cannot be: one that matters is there twice."""
        seen: Counter[str] = Counter()
        names = []
        for column in columns:
            seen[column] += 1
            names.append(column if seen[column] == 1 else f"{column} ({seen[column]})")
        own = self.own(columns)
        twice = [name for name in (*own.texts, own.title, own.id, ACL, self.acl_column) if seen[name] > 1]
        reason = f"There are {seen[twice[0]]} columns {twice[0]!r}. Give each a name of its own." if twice else ""
        return names, reason

    def missing_named(self, what: str, columns: Iterable[str]) -> str:
        """Says that the column named for the "title", "id" or "acl" is none of these."""
        return (
            f"There is no column {self.named[what]!r} for the {what}; there are: {_names(columns)}. Name the right "
            f"one: --{what}-column NAME, or {what}_column in [corpus] of kraq.toml."
        )


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """The columns of a file that matter; `texts` are () if none holds text, the others "" if there is none."""

    texts: tuple[str, ...]
    title: str
    id: str


TEXTS = ("text", "content", "contents", "page_content", "body", "passage", "document", "article", "abstract")
TITLES = ("title", "headline")
IDS = ("id", "_id", "doc_id", "docid", "document_id", "docno", "pid", "passage_id")
"""Usual names of columns, by which they are found if nobody has named one."""


@lru_cache(maxsize=256)
def _own_columns(settings: ReadSettings, columns: tuple[str, ...]) -> OwnColumns:
    title = _found(columns, settings.title_column, "title", TITLES)
    return OwnColumns(
        _text_columns(columns, settings.text_column), title, _found(columns, settings.id_column, "id", IDS)
    )


def _text_columns(columns: tuple[str, ...], named: str) -> tuple[str, ...]:
    if named in columns:
        return (named,)
    several = tuple(part.strip() for part in named.split(","))
    if len(several) > 1 and set(several) <= set(columns):
        return several
    column = _found(columns, named, "text", TEXTS)
    return (column,) if column else ()


def _found(columns: tuple[str, ...], named: str, default: str, usual: Sequence[str]) -> str:
    """The column of that name; if it is the `default` and missing, the first with a usual one, in any case."""
    if named in columns or named != default:
        return named if named in columns else ""
    by_lower = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_lower[name] for name in usual if name in by_lower), "")


@dataclass(frozen=True, slots=True)
class Row:
    """One document as its file gives it. `key` tells it from the file's others; "" if the file is one document.

    `linked` says by where a line begins what of it is linked, where the text has no Markdown that does. `lacks` says
    which of the columns that somebody has named ("title", "id", "acl") are none of the row's. `labels` say who may
    read it. `left_out` says in words what of the file is hidden or not read. `values` are all named values, where rows
    are wanted as they are and not as documents.
    """

    text: str
    title: str = ""
    id: str | None = None
    key: str = ""
    metadata: Metadata = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()
    linked: Mapping[int, Linked] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row, or with an empty `key` a file, that cannot be used. `reason` says what is wrong and what to do."""

    reason: str
    key: str = ""


def damaged(error: Exception) -> BadRow:
    """What a library's error on a file means for it. Raises MemoryError on: that is no damage."""
    if isinstance(error, MemoryError):
        raise error
    problem = f"{type(error).__name__}: {str(error)[:200]}"
    return BadRow(
        f"The file is damaged or protected ({problem}). Open and save it again, or take it out of the corpus."
    )


def shows_nothing(left_out: Sequence[str] = ()) -> BadRow:
    """Why a file with no text cannot be used, and what of it was `left_out`."""
    found = f" It holds {'; '.join(left_out)}." if left_out else ""
    return BadRow(
        f"The file shows no text; what it shows may be pictures.{found} Save it as PDF and run it through OCR."
    )


Reader = Callable[[Path, ReadSettings], Iterator[Row | BadRow]]


def row_of(values: Mapping[str, Any], key: str, settings: ReadSettings) -> Row | BadRow:
    """A row from named values. Missing values (None, NaN, "") are left out of the metadata, and binary ones too."""
    own = settings.own(map(str, values))
    if not own.texts:
        return BadRow(settings.missing(map(str, values)), key)

    text = _text_of(values, own)
    if isinstance(text, BadRow):
        return BadRow(text.reason, key)

    if 4 * len(text) > settings.max_bytes:
        n_bytes = len(text.encode("utf-8", "surrogatepass"))
        if n_bytes > settings.max_bytes:
            return BadRow(settings.too_large(n_bytes), key)

    identifier = values.get(own.id)
    if isinstance(identifier, list | dict | bytes):
        kind = type(identifier).__name__
        return BadRow(f"The column {own.id!r} holds a {kind}; expected a string or a number.", key)

    try:
        acl, labels = _labels(values, own, settings)
    except CorpusError as error:
        return BadRow(str(error), key)
    used = {*own.texts, own.title, own.id, acl}
    return Row(
        text=without_embedded(normalised(text)),
        title=_as_text(values.get(own.title)),
        id=_as_text(identifier) or None,
        key=key,
        metadata={
            normalised(str(name)): _scalar(value)
            for name, value in values.items()
            if name not in used and not _is_missing(value) and not isinstance(value, bytes)
        },
        lacks=frozenset(what for what, column in settings.named.items() if column not in values),
        labels=labels,
    )


def _labels(values: Mapping[str, Any], own: OwnColumns, settings: ReadSettings) -> tuple[str, tuple[str, ...]]:
    """The column with the labels of who may read the document, and these. Raises CorpusError for what is not
    understood."""
    others = [name for name in values if name not in (*own.texts, own.title, own.id)]
    acl = label_column(map(str, others), settings.acl_column, is_row=True, is_strict=not settings.by_function)
    if not acl:
        return "", ()
    value = values.get(acl)
    if acl not in values or (acl == "labels" and value == [] and not settings.acl_column):  # our own export, without
        return acl, labels_of(None) if settings.acl_column else ()
    return acl, labels_of(value)


def _text_of(values: Mapping[str, Any], own: OwnColumns) -> str | BadRow:
    """The text of a row; of several columns a line for each that has something, with its name."""
    if len(own.texts) > 1:
        lines = [f"{name}: {_scalar(values[name])}" for name in own.texts if not _is_missing(values[name])]
        return "\n".join(lines) if lines else BadRow(f"The columns {_names(own.texts)} are empty.")
    column = own.texts[0]
    text = values[column]
    if _is_missing(text):
        return BadRow(f"The column {column!r} is empty.")
    if not isinstance(text, str):
        return BadRow(f"The column {column!r} holds a value of type {type(text).__name__}; expected a string.")
    return text


def _names(columns: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in list(columns)[:20]) or "none"


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and not value.strip())


def _as_text(value: Any) -> str:
    """An id or a title as text. 12.0 gives "12": a column of whole numbers with a gap in it becomes floats in
    pandas."""
    if _is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return normalised(str(value))


def _scalar(value: Any) -> str | int | float | bool:
    if isinstance(value, str):
        return normalised(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in INTEGERS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | decimal.Decimal):
        return str(value)
    return normalised(json.dumps(value, ensure_ascii=False, default=str))
