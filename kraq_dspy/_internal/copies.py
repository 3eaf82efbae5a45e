"""Lets deep copies of a program share what they only read."""

from typing import Any, Self


class SharedByCopies:
    """A store, a model, a connection or a count: a copied program holds the same one.

    DSPy's optimizers copy programs deeply; a copied index would be a second process on the same files, a copied model a
    second one in memory.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
