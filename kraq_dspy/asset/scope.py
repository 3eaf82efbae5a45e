"""Says what somebody may read: the documents that bear one of their labels, or everything."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from kraq_dspy.errors import ScopeError

if TYPE_CHECKING:
    from kraq_dspy.records import Document

ACL = "acl"
"""The column, or the name in front matter, that holds labels if nobody has named another."""

NOBODY = ""
"""The label of a document that says who may read it, and names nobody. No scope has it."""


@dataclass(frozen=True, init=False, slots=True)
class Scope:
    """The labels of whoever asks; a document may be read that has one of them. It cannot be changed.

    >>> staff = Scope(["staff", "sales"])
    >>> staff.allows(["sales", "legal"]), staff.allows(["legal"]), staff.allows([])
    (True, False, False)

    A document without a label may be read by nobody but its owner, who says so: `Scope.everything()`. Labels are
    compared letter by letter. Raises ScopeError for no labels at all, and for what is none.
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
        object.__setattr__(self, "labels", frozenset(given))
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
        return self.is_everything or not self.labels.isdisjoint(labels)

    def allows_document(self, document: "Document") -> bool:
        return self.allows(document.labels)

    def reads_no_more_than(self, labels: Iterable[str]) -> bool:
        """Whether whoever has `labels` may read all that this scope may."""
        return not self.is_everything and self.labels.issubset(labels)

    def __repr__(self) -> str:
        return "Scope.everything()" if self.is_everything else f"Scope({sorted(self.labels)!r})"


def labels_of(value: Any) -> tuple[str, ...]:
    """The labels in a column or in front matter: a list, a list in JSON, or words with commas between; sorted.

    >>> labels_of("staff, sales"), labels_of('["legal"]'), labels_of(["b", "a"]), labels_of(" ")
    (('sales', 'staff'), ('legal',), ('a', 'b'), ('',))

    What names none is the label of nobody (`NOBODY`).
    """
    if isinstance(value, str):
        value = _listed(value)
    elif not isinstance(value, list | tuple | set | frozenset):
        value = [] if value is None else [value]
    labels = sorted({str(label).strip() for label in value if label is not None} - {NOBODY})
    return tuple(labels) or (NOBODY,)


def _listed(text: str) -> list[Any]:
    if text.strip().startswith("["):
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    return text.split(",")
