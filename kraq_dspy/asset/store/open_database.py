"""Opens the database of an index's state, after a look whether it is one."""

from pathlib import Path

from kraq_dspy.asset.store import states, tables
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.states import Lease
from kraq_dspy.errors import IndexStateError


def open_database(lease: Lease, path: Path, write: bool) -> Database:
    """To write only where `write`; that of a state that readers hold never changes, and is opened as constant.

    Raises IndexStateError for a database that is not there, or not one of an index.
    """
    file = lease.home / states.DATABASE
    if not file.is_file():
        raise IndexStateError(
            f"{str(path)!r} is damaged: it has no {states.DATABASE}. Restore it from a copy, or delete the folder and "
            "index again."
        )
    database = Database(file, write=write, constant=lease.file is not None)
    try:
        with database.reading() as connection:
            tables.check(connection, str(file))
    except BaseException:
        database.close()
        raise
    return database
