"""Reads parquet, a batch of rows at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, decode
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, row_of

BATCH = 256  # rows


def read_parquet(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Keys are row numbers from 1. Columns of bytes (images and the like) are not read, but for text without a type,
    as some writers leave it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            if missing := settings.missing(file.schema_arrow.names):
                yield BadRow(missing)
                return
            own = (settings.text_column, settings.title_column, settings.id_column)
            fields = [field for field in file.schema_arrow if field.name in own or not _is_binary(field.type)]
            names, problem = settings.own_names([field.name for field in fields])
            if problem:
                yield BadRow(problem)
                return
            for batch in file.iter_batches(batch_size=BATCH, columns=[field.name for field in fields]):
                for values in zip(*(_values(column, settings) for column in batch.columns), strict=True):
                    number += 1
                    key = str(number)
                    row = row_of(dict(zip(names, values, strict=True)), key, settings)
                    yield BadRow(f"Row {number}: {row.reason}", key) if isinstance(row, BadRow) else row
        if not number:
            yield BadRow("The table has no rows.")
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file system's own; Arrow's have no number
        yield BadRow(f"The Parquet file is damaged after row {number} ({str(error)[:200]}). Write it again.")


def _values(column: Any, settings: ReadSettings) -> list[Any]:
    """Python values. A value that Python cannot hold, such as a time in nanoseconds, is the string Arrow shows."""
    if _is_binary(column.type):
        return [_text(value, settings) for value in column.to_pylist()]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ImportError):
        return [_value(cell) for cell in column]


def _text(value: bytes | None, settings: ReadSettings) -> str | bytes | None:
    if value is None:
        return None
    try:
        return decode(value, settings) if value else ""
    except UnreadableTextError:
        return value  # refused as a text


def _value(cell: Any) -> Any:
    import pyarrow as pa

    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return b""  # not UTF-8 in a column of strings: refused as a text, left out of the metadata
    except (ValueError, OverflowError, ImportError):
        try:
            return cell.cast(pa.string()).as_py()
        except pa.ArrowException:
            return None


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
