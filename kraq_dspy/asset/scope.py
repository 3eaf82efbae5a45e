"""Says what somebody may read: the documents that bear one of their labels, or everything."""

import ast
import dataclasses
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from kraq_dspy.errors import ConfigError, CorpusError, ScopeError

if TYPE_CHECKING:
    from kraq_dspy.records import Document

ACL = "acl"
"""The column, or the name in front matter, that holds labels if nobody has named another."""

NOBODY = ""
"""The label of a document that says who may read it, and names nobody. No scope has it."""


@dataclass(frozen=True, init=False, slots=True)
class Scope:
    """The labels of a person who asks. The person may read each document with one of these labels. A scope never
    changes.

    Args:
        labels: one label or more, compared letter by letter in Unicode's form NFC.

    Raises:
        ScopeError: without a label, or for something that is no label.

    Only the owner may read a document without a label: `Scope.everything()`.

    >>> staff = Scope(["staff", "sales"])
    >>> staff.allows(["sales", "legal"]), staff.allows(["legal"]), staff.allows([])
    (True, False, False)
    """

    labels: frozenset[str]
    is_everything: bool

    def __init__(self, labels: Iterable[str]) -> None:
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            raise ScopeError(f"The labels of a scope are {labels!r:.80}; expected a list of texts, such as ['staff'].")

        given = list(labels)
        if not given:
            raise ScopeError(
                "A scope needs a label: without one nobody may read anything. The owner says Scope.everything()."
            )

        for label in given:
            if not isinstance(label, str) or not label.strip():
                raise ScopeError(f"A label of the scope is {label!r:.80}; expected a text that is not empty.")
        object.__setattr__(self, "labels", frozenset(map(comparable, given)))
        object.__setattr__(self, "is_everything", False)

    @classmethod
    def everything(cls) -> Self:
        """Whoever owns the index: reads all, with labels and without.

        >>> Scope.everything().allows([])
        True
        """
        scope = cls(["everything"])
        object.__setattr__(scope, "labels", frozenset())
        object.__setattr__(scope, "is_everything", True)
        return scope

    def allows(self, labels: Iterable[str]) -> bool:
        """Whether a document with these labels may be read."""
        return self.is_everything or not self.labels.isdisjoint(map(comparable, labels))

    def reads_no_more_than(self, labels: Iterable[str]) -> bool:
        """Whether whoever has `labels` may read all that this scope may."""
        return not self.is_everything and self.labels.issubset(map(comparable, labels))

    def __repr__(self) -> str:
        return "Scope.everything()" if self.is_everything else f"Scope({sorted(self.labels)!r})"


def labels_of(value: Any) -> tuple[str, ...]:
    """The labels in a column or in front matter: a list, a list that is written as text, or words with commas between;
    sorted.

    >>> labels_of("staff, sales"), labels_of('["legal"]'), labels_of("['b', 'a']"), labels_of(" ")
    (('sales', 'staff'), ('legal',), ('a', 'b'), ('',))

    What names none is the label of nobody (`NOBODY`). Raises CorpusError for what is not understood: it must not be
    taken for other labels than were meant.
    """
    if isinstance(value, str):
        given: list[Any] = _written(value)
    elif value is None or (isinstance(value, float) and math.isnan(value)):
        given = []
    elif isinstance(value, Mapping | bytes | bool):
        raise _not_understood(value)
    else:
        given = list(value) if isinstance(value, Iterable) else [value]
    labels = sorted({_label(each) for each in given} - {NOBODY})
    return tuple(labels) or (NOBODY,)


def labelled(
    document: "Document", labels: Callable[["Document"], Iterable[str]] | None, *, is_declared: bool = False
) -> "Document":
    """The document with the labels that the function `labels` gives it, or in order those that it has.

    If labels are declared (`is_declared`), or a function gives them, a document without any gets that of nobody. Raises
    CorpusError, with the document's id, for labels that are not understood, and ConfigError if the function fails.
    """
    own: Any = document.labels
    if labels is not None:
        try:
            own = labels(document)
            own = own if own is None or isinstance(own, str | bytes | Mapping) else list(own)
        except Exception as error:
            raise ConfigError(
                f"The function that gives labels (labels=) failed for the document {document.id!r}: "
                f"{type(error).__name__}: {error}. Nothing was indexed without its labels."
            ) from error
    elif not own and not is_declared:
        return document
    try:
        ordered = labels_of(own if own else None)
    except CorpusError as error:
        raise CorpusError(f"The document {document.id!r}: {error}") from None
    return document if ordered == document.labels else dataclasses.replace(document, labels=ordered)


def unlabelled(document: "Document") -> str:
    """Why the document is refused where labels are required: it names nobody. "" if it has labels."""
    if any(document.labels):
        return ""
    return (
        "The document names nobody who may read it, and labels are required ([corpus] labels). Give it labels: the "
        "field or column 'acl', front matter, or a row of the file of labels (--labels FILE)."
    )


def comparable(label: str) -> str:
    """The label as kraq compares it: in Unicode's form NFC, since one letter may be written in two ways."""
    return unicodedata.normalize("NFC", label)


_AS_TEXT = re.compile(r"""[\[({](?:\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*(?:,|(?=[\])}])))*\s*[\])}]""")
"""A list, tuple or set of texts as Python writes it. numpy leaves the commas between them out, and that is none."""

_MISSING = frozenset(("nan", "NaN", "null", "NULL", "None", "~", "<NA>"))
_TRUTH = frozenset(("true", "false"))
_LONGEST = 100_000  # characters of labels that are written as text
_JOINERS = str.maketrans("", "", "\u200c\u200d")  # with which Persian and Hindi are spelt


def _written(text: str) -> list[Any]:
    text = text.strip()
    if text in _MISSING or len(text) > _LONGEST:
        if len(text) > _LONGEST:
            raise _not_understood(text)
        return []

    if text.startswith(("[", "{", "('", '("')):
        return _list_in(text)

    parts = text.split(",")
    if any(mark in text for mark in '[]{}";|\n\r\t') or text.startswith("'") or text.endswith("'"):
        raise _not_understood(text)
    if len(parts) > 1 and ("\\," in text or any("=" in part for part in parts)):
        raise CorpusError(
            f"The labels of who may read it are {text!r:.120}: one name of a directory, with commas? Write a list: "
            f"{json.dumps([text], ensure_ascii=False):.130}."
        )
    return parts


def _list_in(text: str) -> list[Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        if not _AS_TEXT.fullmatch(text):
            raise _not_understood(text) from None
        try:
            parsed = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise _not_understood(text) from None
    if isinstance(parsed, str):  # ('a') is a text for Python
        return [parsed]
    if not isinstance(parsed, list | tuple | set):
        raise _not_understood(text)
    return list(parsed)


def _label(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOBODY
    if isinstance(value, str):
        label = comparable(value).strip()
        if not label.translate(_JOINERS).isprintable() or label == "*" or label.casefold() in _TRUTH:
            raise _not_understood(value)
        return label
    if isinstance(value, float) and value.is_integer():  # pandas makes floats of whole numbers with a gap among them
        return str(int(value))
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise _not_understood(value)


def _not_understood(value: Any) -> CorpusError:
    return CorpusError(
        f"The labels of who may read it are {value!r:.120}, which kraq does not understand. Write names with commas "
        'between, or a list, such as ["staff", "legal"]; there is no wildcard, and nothing nested.'
    )
