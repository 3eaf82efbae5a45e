"""Reads what imports have in common: rows of parquet and JSON lines files, and documents made of passages.

What cannot be read is named with its file and place.
"""

import gzip
import json
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.errors import ExchangeError
from kraq_dspy.records import Chunk, Document, Metadata

SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")
_BETWEEN = "\n\n"

Row = dict[str, Any]


def find_table(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of `names` that is a file in `folder`, with one of `SUFFIXES`."""
    candidates = (folder / f"{name}{suffix}" for name in names for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def read_rows(path: Path, on_bad: Callable[[str], None] | None = None) -> Iterator[Row]:
    """The rows of a file. `on_bad` is told the reason of each JSON line that is no object, and reading goes on.

    Raises ExchangeError for an unreadable file and, without `on_bad`, for a bad line.
    """
    if not path.name.endswith(SUFFIXES):
        raise ExchangeError(f"{path.name!r} is none of {', '.join(SUFFIXES)}.")
    try:
        yield from _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(path, on_bad)
    except FileNotFoundError:
        raise ExchangeError(f"There is no file {str(path)!r}.") from None
    except (OSError, EOFError) as error:  # gzip: damaged data is an OSError, cut data an EOFError
        raise ExchangeError(f"{path.name!r} cannot be read: {error}. Is the file whole?") from error


def _json_rows(path: Path, on_bad: Callable[[str], None] | None) -> Iterator[Row]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                except (ValueError, RecursionError) as error:
                    row, reason = None, f"no valid JSON ({error})"
                else:
                    reason = "no JSON object"
                if isinstance(row, dict):
                    yield row
                elif on_bad is not None:
                    on_bad("no JSON object")
                else:
                    raise ExchangeError(f"{path.name!r}, line {number}: {reason}.")
        except zlib.error as error:
            raise ExchangeError(f"{path.name!r} is damaged: {error}.") from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, pyarrow.ArrowTypeError) as error:
        raise ExchangeError(f"{path.name!r} is no parquet file that can be read: {error}.") from error


def require_columns(path: Path, row: Row, columns: Iterable[str]) -> None:
    """Raises ExchangeError for the columns that `row` lacks."""
    if missing := [name for name in columns if name not in row]:
        present = ", ".join(map(repr, sorted(row))) or "none"
        raise ExchangeError(f"{path.name!r} lacks the column {', '.join(map(repr, missing))}; it has: {present}.")


def text_of(value: Any) -> str:
    """A cell as text: "" for nothing and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def texts_of(value: Any) -> list[str]:
    """A cell as a list of texts; none where it is no list."""
    return [text_of(each) for each in value] if isinstance(value, list) else []


def number_of(value: Any, default: float) -> float:
    """A cell as a finite number, else `default`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return default
    return number if math.isfinite(number) else default


def document_of_passages(document: Document, passages: Sequence[str]) -> tuple[Document, list[Chunk], bool]:
    """`document` with its chunks, one for each of `passages`, in their order; and whether its text was kept.

    Where a passage is not literally in the document's text (GraphRAG may put a title before each text unit), the text
    becomes the passages one after the other, so that every chunk is a span of it.
    """
    spans = _spans(document.text, passages)
    kept = spans is not None
    if spans is None:
        document = Document(document.id, document.title, _BETWEEN.join(passages), document.source, document.metadata)
        spans, start = [], 0
        for passage in passages:
            spans.append((start, start + len(passage)))
            start += len(passage) + len(_BETWEEN)
    return document, chunks_at(document, spans), kept


def _spans(text: str, passages: Sequence[str]) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    search_from = 0
    for passage in passages:
        start = text.find(passage, search_from)
        if start < 0:
            return None
        spans.append((start, start + len(passage)))
        search_from = start + 1  # passages may overlap
    return spans


TABLES = {
    "entities": ("entities",),
    "relationships": ("relationships",),
    "communities": ("communities",),
    "community_reports": ("community_reports",),
    "text_units": ("text_units", "corpus"),
    "documents": ("documents",),
    "covariates": ("covariates", "claims"),
}
"""The names that each table may have, without suffix."""
OPTIONAL = {"documents", "covariates"}


@dataclass(frozen=True)
class Tables:
    """The files of an import by the names of their tables."""

    folder: Path
    paths: Mapping[str, Path]

    @classmethod
    def at(cls, folder: Path) -> "Tables":
        if not folder.is_dir():
            raise ExchangeError(f"There is no folder {str(folder)!r}. Give GraphRAG's output folder.")
        place = folder / "output" if find_table(folder, TABLES["entities"]) is None else folder
        paths = {table: find_table(place, names) for table, names in TABLES.items()}
        if not paths["entities"]:
            there = ", ".join(sorted(repr(path.name) for path in folder.iterdir())[:20]) or "nothing"
            raise ExchangeError(
                f"{folder.name!r} has no table 'entities' ({', '.join(SUFFIXES)}), neither itself nor in 'output'; it "
                f"has: {there}. Give GraphRAG's output folder, of version 2 or 3."
            )
        missing = [table for table, path in paths.items() if path is None and table not in OPTIONAL]
        if missing:
            there = ", ".join(repr(path.name) for path in paths.values() if path)
            raise ExchangeError(f"{place.name!r} lacks the table {', '.join(map(repr, missing))}; it has: {there}.")
        return cls(place, {table: path for table, path in paths.items() if path})

    def has(self, table: str) -> bool:
        return table in self.paths

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of a table. Raises ExchangeError where the first one lacks one of `columns`."""
        path = self.paths[table]
        for number, row in enumerate(read_rows(path)):
            if number == 0:
                require_columns(path, row, columns)
            yield row


class Texts:
    """Documents and chunks; `chunk_ids` are ours by the ids of text units."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.chunks: list[Chunk] = []
        self.chunk_ids: dict[str, str] = {}

    def order(self) -> dict[str, int]:
        return {chunk.id: place for place, chunk in enumerate(self.chunks)}

    @classmethod
    def of(cls, tables: Tables, problems: Counter[str]) -> "Texts":
        texts = cls()
        source = tables.folder.name
        documents: dict[str, Document] = {}
        if tables.has("documents"):
            for row in tables.rows("documents", ["id"]):
                title = text_of(row.get("title"))
                document = Document(
                    text_of(row["id"]), title, text_of(row.get("text")), title or source, _metadata(row)
                )
                documents[document.id] = document
        units: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in tables.rows("text_units", ["id", "text"]):
            text = text_of(row["text"])
            if not text.strip():
                problems["text units without text were left out"] += 1
                continue
            owner, title = _owner(row)
            if owner not in documents:
                documents[owner] = Document(owner, title, "", title or source)
                problems["documents are not in the table of documents: their text is that of their text units"] += 1
            units[owner].append((text_of(row["id"]), text))
        for id, document in documents.items():
            places = {unit_id: document.text.find(text) for unit_id, text in units[id]}
            if min(places.values(), default=-1) >= 0:
                units[id].sort(key=lambda unit: places[unit[0]])
            ids = [unit_id for unit_id, _ in units[id]]
            whole, chunks, kept = document_of_passages(document, [text for _, text in units[id]])
            if document.text and not kept:
                problems["documents do not contain their text units literally: their text is that of the units"] += 1
            texts.documents.append(whole)
            texts.chunks.extend(chunks)
            texts.chunk_ids.update(zip(ids, (chunk.id for chunk in chunks), strict=True))
        return texts


def _owner(row: Row) -> tuple[str, str]:
    """(id, title) of the document of a text unit; units without either are documents of their own."""
    title = text_of(row.get("title"))
    ids = texts_of(row.get("document_ids"))
    return text_of(row.get("document_id")) or (ids[0] if ids else "") or title or text_of(row["id"]), title


def _metadata(row: Row) -> Metadata:
    """`metadata` (2.x) or `raw_data` (3.x), where they hold plain values, and the date of creation."""
    fields: dict[str, Any] = {}
    for column in ("metadata", "raw_data"):
        value = row.get(column)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                continue
        if isinstance(value, dict):
            fields.update(value)
    if text_of(row.get("creation_date")):
        fields["creation_date"] = text_of(row["creation_date"])
    plain = {str(key): value for key, value in fields.items() if isinstance(value, str | int | float | bool)}
    return {key: value for key, value in plain.items() if key not in ("id", "title", "text", "text_unit_ids")}
