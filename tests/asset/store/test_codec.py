"""Tests that every record comes back from SQLite as it was, whatever its fields hold."""

import dataclasses
import sqlite3
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.store.codec import dumps, loads, restored, storable
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.records import Chunk, Document, ExtractedEntity, Extraction

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates and NUL among them
SCALARS = ANY_TEXT | st.integers() | st.floats(allow_nan=False) | st.booleans()


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that a record's field may have, by its annotation."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return st.builds(hint, **{name: values_of(kind) for name, kind in get_type_hints(hint).items()})
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=4).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(ANY_TEXT, SCALARS, max_size=4)
    if hint == str | None:
        return st.none() | ANY_TEXT
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: ANY_TEXT,
        int: st.integers(),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
    }
    return simple[hint]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**22])
def test_an_integer_of_more_than_64_bits_is_not_rounded(number: int) -> None:
    document = Document("d", "Numbers", "Many.", metadata={"number": number})

    assert loads(Document, dumps(document)).metadata == {"number": number}


@pytest.mark.parametrize("kind", list(TABLES), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_record_comes_back_from_sqlite_as_it_was(kind: type, data: st.DataObject) -> None:
    record = data.draw(values_of(kind))
    database = sqlite3.connect(":memory:")

    database.execute("CREATE TABLE t (data)")
    database.execute("INSERT INTO t VALUES (?)", (storable(dumps(record)),))
    (stored,) = database.execute("SELECT data FROM t").fetchone()
    database.close()
    back: Any = loads(kind, restored(stored))

    assert back == record
    assert repr(back) == repr(record)  # == takes 1 for 1.0 and for True


def test_sequences_come_back_as_tuples_of_records() -> None:
    extraction = Extraction("c1", entities=(ExtractedEntity("Ada", "person", "a mathematician"),))

    assert loads(Extraction, dumps(extraction)).entities == (ExtractedEntity("Ada", "person", "a mathematician"),)


def test_text_that_is_another_record_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="not a Chunk"):
        loads(Chunk, '{"id": "x"}')


def test_a_value_that_json_cannot_hold_is_refused_by_type() -> None:
    chunk = Chunk("c", "d", 0, 0, 1, "t", 1, metadata={"when": object()})  # type: ignore[dict-item]

    with pytest.raises(TypeError, match="object"):
        dumps(chunk)
