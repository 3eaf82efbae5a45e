"""Tests that a database writes all or nothing, is read while it is written, and names what is wrong with it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy.asset.store.database import Database
from kraq_dspy.errors import IndexStateError


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "index.db")
    with database.writing() as connection:
        connection.execute("CREATE TABLE numbers (n)")
    return database


def numbers(database: Database) -> list[int]:
    with database.reading() as connection:
        return [n for (n,) in connection.execute("SELECT n FROM numbers")]


def test_a_block_that_raises_writes_nothing(database: Database) -> None:
    def broken() -> Iterator[tuple[int]]:
        yield (1,)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), database.writing() as connection:
        connection.executemany("INSERT INTO numbers VALUES (?)", broken())

    assert numbers(database) == []


def test_a_reader_sees_what_is_committed_while_a_write_is_under_way(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
        reads: list[list[int]] = []
        reader = threading.Thread(target=lambda: reads.append(numbers(database)))
        reader.start()
        reader.join()

    assert reads == [[]]
    assert numbers(database) == [1]


def test_a_write_inside_a_write_of_the_same_thread_is_refused_and_undone(database: Database) -> None:
    def writes_too() -> Iterator[tuple[int]]:
        yield (1,)
        with database.writing():
            yield (2,)

    with pytest.raises(IndexStateError, match="in the middle of a write"), database.writing() as connection:
        connection.executemany("INSERT INTO numbers VALUES (?)", writes_too())

    assert numbers(database) == []


def test_a_full_disk_is_named_and_leaves_what_was_committed(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")

    with pytest.raises(IndexStateError, match=r"disk is full.*free some space"), database.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES (?)", ("x" * 100_000,))

    assert numbers(database) == [1]
    with database.writing() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
        connection.execute("INSERT INTO numbers VALUES (2)")
    assert numbers(database) == [1, 2]


def test_a_file_that_is_no_database_is_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"not a database at all" * 100)

    with pytest.raises(IndexStateError, match="damaged: restore"):
        Database(tmp_path / "index.db")


def test_a_reader_cannot_write(database: Database) -> None:
    reader = Database(database.path, write=False)

    with pytest.raises(IndexStateError, match="opened for reading"), reader.writing():
        pass
    with pytest.raises(IndexStateError), reader.reading() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")


def test_a_closed_database_says_so(database: Database) -> None:
    database.close()
    database.close()

    with pytest.raises(IndexStateError, match="closed"):
        numbers(database)
    with pytest.raises(IndexStateError, match="closed"), database.writing():
        pass


def test_closing_under_readers_of_other_threads_ends_them_with_a_reason(tmp_path: Path) -> None:
    """To close a connection in whose statement another thread is may end the process: so it did, once, in a test."""
    path = tmp_path / "index.db"
    writer = Database(path)
    with writer.writing() as connection:
        connection.execute("CREATE TABLE numbers (n)")
        connection.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(5000)))
    writer.close()
    reasons: list[str] = []

    def read(database: Database, begun: threading.Event) -> None:
        try:
            while True:
                assert len(numbers(database)) == 5000
                begun.set()
        except IndexStateError as error:
            reasons.append(str(error))

    for _ in range(20):
        database = Database(path, write=False)
        begun = [threading.Event() for _ in range(4)]
        readers = [threading.Thread(target=read, args=(database, event)) for event in begun]
        for reader in readers:
            reader.start()
        assert all(event.wait(60) for event in begun)
        database.close()
        for reader in readers:
            reader.join(60)
        assert not any(reader.is_alive() for reader in readers)
        assert not database._lent
    assert len(reasons) == 80
    assert all("closed" in reason for reason in reasons)


def test_a_file_that_is_another_one_by_a_hard_link_is_not_changed(tmp_path: Path) -> None:
    Database(tmp_path / "a.db").close()
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(IndexStateError, match="hard link"):
        Database(tmp_path / "b.db")
    assert (tmp_path / "a.db").read_bytes() == before
    Database(tmp_path / "b.db", write=False).close()
