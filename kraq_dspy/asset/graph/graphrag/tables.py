"""Finds GraphRAG's tables in a folder and reads their rows, from parquet or from JSON lines."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import EMPTY
from kraq_dspy.asset.corpus.formats.rows import BadRow
from kraq_dspy.asset.corpus.formats.tables import NO_ROWS
from kraq_dspy.asset.corpus.formats.values import ValueSettings, read_values
from kraq_dspy.errors import ExchangeError

Row = dict[str, Any]

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")
NAMES: Mapping[str, tuple[str, ...]] = {
    "entities": ("entities",),
    "relationships": ("relationships",),
    "communities": ("communities",),
    "community_reports": ("community_reports",),
    "text_units": ("text_units", "corpus"),
    "documents": ("documents",),
    "covariates": ("covariates", "claims"),
}
"""The file names of each table, without suffix."""

OPTIONAL = frozenset({"documents", "covariates"})


@dataclass(frozen=True)
class Tables:
    """The files of GraphRAG's output, by the names of their tables."""

    folder: Path
    paths: Mapping[str, Path]

    @classmethod
    def at(cls, folder: Path) -> "Tables":
        """Return those of a project or of its output folder. Raises ExchangeError if one is
        missing."""
        if not folder.is_dir():
            raise ExchangeError(f"There is no folder {str(folder)!r}. Give GraphRAG's output folder.")

        place = _holding_entities(folder)
        path_of = {table: path for table in NAMES if (path := _file_of(place, table)) is not None}
        missing = [table for table in NAMES if table not in path_of and table not in OPTIONAL]
        if missing:
            there = ", ".join(repr(path.name) for path in path_of.values())
            raise ExchangeError(
                f"{place.name!r} is missing the table {', '.join(map(repr, missing))}; it has: {there}."
            )
        return cls(place, path_of)

    def has(self, table: str) -> bool:
        return table in self.paths

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of a table. Raises ExchangeError if the first one lacks one of the `columns`."""
        path = self.paths[table]
        for number, row in enumerate(_values(path)):
            if number == 0:
                _require_columns(path, row, columns)
            yield row


def _holding_entities(folder: Path) -> Path:
    """The folder itself or its "output", where GraphRAG's project keeps the tables."""
    for place in (folder, folder / "output"):
        if _file_of(place, "entities") is not None:
            return place

    there = ", ".join(sorted(repr(path.name) for path in folder.iterdir())[:20]) or "nothing"
    raise ExchangeError(
        f"{folder.name!r} has no table 'entities' ({', '.join(SUFFIXES)}), neither itself nor in 'output'; it has: "
        f"{there}. Give GraphRAG's output folder, of version 2 or 3."
    )


def _file_of(folder: Path, table: str) -> Path | None:
    for name in NAMES[table]:
        for suffix in SUFFIXES:
            path = folder / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


def _values(path: Path) -> Iterator[Row]:
    """The rows of a file. Raises ExchangeError for a file or a row that cannot be read."""
    try:
        for row in read_values(path, ValueSettings()):
            if isinstance(row, BadRow):
                if row.reason in (EMPTY, NO_ROWS):
                    return
                raise ExchangeError(f"{path.name!r} cannot be read: {row.reason}")
            yield dict(row.values)
    except OSError as error:
        raise ExchangeError(f"{path.name!r} cannot be read: {error}. Is the file whole?") from error


def _require_columns(path: Path, row: Row, columns: Iterable[str]) -> None:
    if missing := [column for column in columns if column not in row]:
        present = ", ".join(map(repr, sorted(row))) or "none"
        raise ExchangeError(f"{path.name!r} is missing the column {', '.join(map(repr, missing))}; it has: {present}.")


# Cells


def text_of(value: Any) -> str:
    """A cell as text: "" for nothing and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def texts_of(value: Any) -> list[str]:
    """A cell as a list of texts; none if it is no list."""
    return [text_of(each) for each in value] if isinstance(value, list) else []


def number_of(value: Any, default: float) -> float:
    """A cell as a finite number, else `default`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return default
    return number if math.isfinite(number) else default


def whole_number(value: Any) -> int:
    """A cell as a whole number; -1, which GraphRAG writes for none, if it is no number."""
    return int(number_of(value, -1))
