"""Records in memory where an index stands otherwise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Given:
    """The records of each kind; none of a kind that is not named."""

    by_kind: Mapping[type[Any], Sequence[Any]]

    def all(self, kind: type[R], /) -> Iterable[R]:
        return iter(self.by_kind.get(kind, ()))
