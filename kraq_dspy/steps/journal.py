"""Keeps what was paid for in a file of JSON lines, so that a run that goes on asks for none of it again.

One mechanism serves every run that has a file of its own: a test set's draft, a compile's replies, a table's
references, pairs for training, the rows of an evaluation. An index keeps its own in `asset/store/results.py`.
"""

import json
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kraq_dspy._internal.files import append_line, drop_torn_line, json_objects, try_lock
from kraq_dspy.errors import IndexLockedError, KraqError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class JournalFile(Mapping[K, V]):
    """What was paid for, by what was asked of whom: a line of JSON each, on the disk when `keep` returns.

    >>> from kraq_dspy.errors import EvaluationError
    >>> def key_and_output(line):
    ...     return line["key"], line["output"]
    >>> journal = JournalFile(None, key_and_output, "the draft of a test set", EvaluationError)
    >>> journal.keep({"key": "ask passage 1", "output": "Where did Ada live?"})
    >>> journal.get("ask passage 1"), journal.get("ask passage 2")
    ('Where did Ada live?', None)

    The file holds whole lines, and memory what `read` makes of each: its key and what is looked up by it. Of two lines
    with one key the later one counts. A last line that a crash of the machine cut off is dropped. Safe for threads.

    One process at a time has the file: from here on if it exists, else from the first line, until `close` or until
    nothing refers to the journal. To any other process, IndexLockedError names the file.
    """

    def __init__(
        self,
        path: Path | None,
        read: Callable[[Mapping[str, Any]], tuple[K, V]],
        what: str,
        failure: type[KraqError],
        *,
        is_private: bool = False,
        allow_nan: bool = True,
    ) -> None:
        """Read what an earlier run left in `path`; without a path, everything is in memory alone.

        `what` names the file in messages, such as "the draft of a test set". Raises `failure` for a line that cannot be
        read, and IndexLockedError while another process has the file. Other accounts cannot read one that `is_private`,
        and no other journal of this process may have it. Without `allow_nan`, `keep` raises ValueError for a number
        that JSON does not have.
        """
        self.path = path
        self._read = read
        self._what = what
        self._is_private = is_private
        self._allow_nan = allow_nan
        self._held: dict[K, V] = {}
        self._writing = threading.Lock()
        self._owned: OwnedFile | None = None
        if path is None:
            return

        try:
            if is_private or path.exists():
                self._own(path)
            drop_torn_line(path)
            for place, line in json_objects(path, failure, what) if path.exists() else ():
                try:
                    key, value = read(line)
                except (KeyError, TypeError) as error:
                    lacks = f"it has no {error}" if isinstance(error, KeyError) else str(error)
                    raise failure(f"{place} is not a line of {what}: {lacks}.") from error
                self._held[key] = value
        except BaseException:
            self.close()
            raise

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def keep(self, line: Mapping[str, Any]) -> None:
        """Write a line, and hold it as if it had been read. Raises OSError where the file cannot be written, and
        IndexLockedError if another process has made the file meanwhile."""
        key, value = self._read(line)
        with self._writing:
            if self.path is not None:
                if self._owned is None:
                    self._own(self.path)
                append_line(self.path, json.dumps(line, ensure_ascii=False, allow_nan=self._allow_nan))
            self._held[key] = value

    def close(self) -> None:
        """Let other processes have the file, unless another journal of this process has it too."""
        self._owned = None

    def _own(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._owned = own_file(path, self._what, is_private=self._is_private)


class OwnedFile:
    """A file that no other process may write while something refers to this; `own_file` makes it."""

    def __init__(self, descriptor: int) -> None:
        weakref.finalize(self, os.close, descriptor)


_owned_files: weakref.WeakValueDictionary[tuple[int, int], OwnedFile] = weakref.WeakValueDictionary()
"""Those of this process, by device and number: a lock knows descriptors, and a run that failed may go on here."""
_owning = threading.Lock()


def own_file(path: Path, what: str, *, is_private: bool = False) -> OwnedFile:
    """Take a file, which is made if it is missing, for this process; `what` and `is_private` as for `JournalFile`.

    Raises IndexLockedError while another process has it. On a file system without locks every process may.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600 if is_private else 0o666)
    status = os.fstat(descriptor)
    with _owning:
        shared = None if is_private else _owned_files.get((status.st_dev, status.st_ino))
        if shared is not None or try_lock(descriptor) is False:
            os.close(descriptor)
            if shared is not None:
                return shared
            raise IndexLockedError(
                f"Another process is writing {what} {path.name!r}; wait for it, or give another --out."
            )
        owned = OwnedFile(descriptor)
        _owned_files[status.st_dev, status.st_ino] = owned
        return owned
