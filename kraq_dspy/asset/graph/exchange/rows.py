"""Reads what imports have in common: rows of parquet and JSON lines files, and documents made of passages.

What cannot be read is named with its file and place.
"""

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.errors import ExchangeError
from kraq_dspy.records import Chunk, Document

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


def require_columns(path: Path, row: Row, columns: Iterable[str | tuple[str, ...]]) -> None:
    """Raises ExchangeError for the columns that `row` lacks; of a tuple, one is enough."""
    alternatives = [(each,) if isinstance(each, str) else each for each in columns]
    missing = [" or ".join(map(repr, names)) for names in alternatives if not any(name in row for name in names)]
    if missing:
        present = ", ".join(map(repr, sorted(row))) or "none"
        raise ExchangeError(f"{path.name!r} lacks the column {', '.join(missing)}; it has: {present}.")


def text_of(value: Any) -> str:
    """A cell as text: "" for nothing and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def texts_of(value: Any) -> list[str]:
    """A cell as a list of texts; older tables hold lists as one text with commas, or in pieces of that kind."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list | tuple):
        return [
            text for each in value for text in (texts_of(each) if isinstance(each, str) else [text_of(each)]) if text
        ]
    return []


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
