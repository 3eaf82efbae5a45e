"""Tells the rows of a table that is longer than a passage: each with the names of its columns, as sheets are told."""

from collections.abc import Sequence

LONGEST = 1_000
"""Characters of a table that stays a table: about a passage, so that its header stands with its rows."""


def told_rows(rows: Sequence[Sequence[str]]) -> list[str] | None:
    """A line for each row below the header; None for a table that is short, or has no name for each column
    but the first, which often names the rows themselves.

    >>> told_rows([["Route", "Fare"], *([f"R{n}", "4"] for n in range(400))])[1]
    'Route: R1; Fare: 4'
    """
    header, *others = rows or [[]]
    n_letters = sum(len(cell) + 1 for row in rows for cell in row)
    if n_letters <= LONGEST or len(header) == 1 or not all(header[1:]) or len(set(header)) < len(header):
        return None
    named = (
        [f"{name}: {cell}" if name else cell for name, cell in zip(header, row, strict=False) if cell] for row in others
    )
    return ["; ".join(cells) for cells in named if cells]
