"""Stores what language models answered, so that nothing is paid for twice.

A *result* is the finished output of one item in one stage, with the fingerprint of what went into it. The *journal*
holds the single answers of items that are not finished yet: a killed build replays them. The *ledger* adds up what was
paid for; it only grows.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kraq_dspy.asset.store import codec
from kraq_dspy.asset.store.codec import compressed, restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Failure, Usage, content_id

SCHEMA = """
CREATE TABLE results (
    stage TEXT NOT NULL, item_id NOT NULL, fingerprint TEXT NOT NULL, output NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    PRIMARY KEY (stage, item_id)
);
CREATE INDEX results_item ON results (item_id);
CREATE TABLE journal (
    stage TEXT NOT NULL, item_id NOT NULL, request TEXT NOT NULL, response NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    PRIMARY KEY (stage, item_id, request)
);
CREATE TABLE ledger (
    stage TEXT NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    PRIMARY KEY (stage, model)
);
CREATE TABLE settled (stage TEXT PRIMARY KEY, made_by TEXT NOT NULL);
"""


class ResultStore:
    """Shares the database of an index, whose table of failures it keeps. Safe for threads.

    Every method is one transaction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_use: dict[str, set[str]] = {}  # by stage, of those that `watching` is about

    @contextmanager
    def watching(self, stage: str) -> Iterator[set[str]]:
        """The ids of those items of a stage whose result is found, or saved, in the block; it grows meanwhile."""
        in_use: set[str] = set()
        self._in_use[stage] = in_use
        try:
            yield in_use
        finally:
            del self._in_use[stage]

    def find(self, stage: str, item_id: str, fingerprint: str) -> Any | None:
        """The output of an item, as JSON values; None when there is none or when it was made from something else."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT output FROM results WHERE stage = ? AND item_id = ? AND fingerprint = ?",
                (stage, storable(item_id), fingerprint),
            ).fetchone()
        if row is None:
            return None
        if stage in self._in_use:
            self._in_use[stage].add(item_id)
        return _value(row[0])

    def settle(self, stage: str, made_by: str) -> None:
        """Note that every result of the stage was made by `made_by`, and that nothing of it is left to be done."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO settled VALUES (?, ?)", (stage, made_by))

    def unsettle(self, stage: str) -> None:
        """Take that back: something else is to be made, or some of it anew."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM settled WHERE stage = ?", (stage,))

    def settled(self, stage: str) -> str:
        """Return what `settle` was told last; "" if it was taken back."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT made_by FROM settled WHERE stage = ?", (stage,)).fetchone()
        return row[0] if row else ""

    def outputs(self, stage: str, item_ids: Sequence[str]) -> dict[str, Any]:
        """The outputs of those items that have one, by id, whatever model or instructions made them."""
        outputs: dict[str, Any] = {}
        with self._database.reading() as connection:
            for item_id in dict.fromkeys(item_ids):
                row = connection.execute(
                    "SELECT output FROM results WHERE stage = ? AND item_id = ?", (stage, storable(item_id))
                ).fetchone()
                if row is not None:
                    outputs[item_id] = _value(row[0])
        return outputs

    def take(self, stage: str, source: "ResultStore", item_ids: Sequence[str]) -> None:
        """Copy the results of these items of a stage from another store, as they are; what took calls is counted
        there."""
        columns = "stage, item_id, fingerprint, output, model, 0, 0, 0"
        sql = f"SELECT {columns} FROM results WHERE stage = ? AND item_id = ?"
        with source._database.reading() as connection:
            rows: list[tuple[Any, ...]] = []
            for id in item_ids:
                rows += connection.execute(sql, (stage, storable(id))).fetchall()
        with self._database.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def save(self, stage: str, item_id: str, fingerprint: str, output: Any, *, model: str, flaw: str = "") -> None:
        """Keep the output of a finished item, and forget its journal and its failure; with a `flaw` it counts as failed
        for that reason all the same.

        `output` is a JSON value other than None, or a record.
        """
        if output is None:
            raise ValueError(f"The output of {item_id!r} in {stage!r} is None; None means that there is no result.")

        text = compressed(codec.dumps(output))
        key = (stage, storable(item_id))
        with self._database.writing() as connection:
            sums = connection.execute(f"SELECT {_SUMS} FROM journal WHERE stage = ? AND item_id = ?", key).fetchone()
            connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, fingerprint, text, model, *sums),
            )
            connection.execute("DELETE FROM journal WHERE stage = ? AND item_id = ?", key)
            connection.execute("DELETE FROM failures WHERE id = ?", (failure_id(stage, item_id),))
            if flaw:
                _note_failure(connection, Failure(stage, item_id, flaw, 1))

        if stage in self._in_use:
            self._in_use[stage].add(item_id)

    def fail(self, stage: str, item_id: str, reason: str) -> None:
        """Note that an item failed (once more), and forget its journal, so that a retry asks again."""
        key = (stage, storable(item_id))
        with self._database.writing() as connection:
            id = failure_id(stage, item_id)
            row = connection.execute("SELECT data FROM failures WHERE id = ?", (id,)).fetchone()
            attempts = codec.loads(Failure, restored(row[0])).attempts if row else 0
            _note_failure(connection, Failure(stage, item_id, reason, attempts + 1))
            connection.execute("DELETE FROM journal WHERE stage = ? AND item_id = ?", key)

    def failures(self, stage: str | None = None) -> list[Failure]:
        """Return what failed and has not succeeded since, in the order of the first failure."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT data FROM failures WHERE ? IS NULL OR stage = ? ORDER BY seq", (stage, stage)
            ).fetchall()
        return [codec.loads(Failure, restored(data)) for (data,) in rows]

    def recall(self, stage: str, item_id: str, request_hash: str) -> str | None:
        """The journalled response to a request of an unfinished item, as it was given to `remember`."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT response FROM journal WHERE stage = ? AND item_id = ? AND request = ?",
                (stage, storable(item_id), request_hash),
            ).fetchone()
        return None if row is None else restored(row[0])

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None:
        """Keep one answer of an unfinished item, and enter what it took in the ledger."""
        counts = usage.calls, usage.prompt_tokens, usage.completion_tokens
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (stage, storable(item_id), request_hash, storable(response_json), model, *counts),
            )
            connection.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stage, model) DO UPDATE SET "
                "calls = calls + excluded.calls, prompt_tokens = prompt_tokens + excluded.prompt_tokens, "
                "completion_tokens = completion_tokens + excluded.completion_tokens, "
                "cached_tokens = cached_tokens + excluded.cached_tokens",
                (stage, model, *counts, usage.cached_tokens),
            )

    def usage(self) -> dict[tuple[str, str], Usage]:
        """Everything ever paid for, by (stage, model), also for items that failed or were removed since."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT * FROM ledger ORDER BY rowid").fetchall()
        return {(stage, model): Usage(*counts) for stage, model, *counts in rows}

    def calls(self, *stages: str) -> int:
        """Tell how many calls these stages ever took, over all models."""
        return sum(usage.calls for (stage, _), usage in self.usage().items() if stage in stages)

    def forget_items(self, item_ids: Iterable[str]) -> None:
        """Forget the results, journals and failures of these items in every stage: they are not there any more."""
        keys = [(storable(item_id),) for item_id in item_ids]
        with self._database.writing() as connection:
            for table in _TABLES_OF_ITEMS:
                connection.executemany(f"DELETE FROM {table} WHERE item_id = ?", keys)

    def prune(self, stage: str, keep_item_ids: Iterable[str]) -> None:
        """Do as `forget_items` does, for all other items of a stage."""
        with self._database.writing() as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS kept (item_id PRIMARY KEY)")
            connection.executemany(
                "INSERT OR IGNORE INTO kept VALUES (?)", ((storable(item_id),) for item_id in keep_item_ids)
            )
            for table in _TABLES_OF_ITEMS:
                connection.execute(
                    f"DELETE FROM {table} WHERE stage = ? AND item_id NOT IN (SELECT item_id FROM kept)", (stage,)
                )
            connection.execute("DELETE FROM kept")

    def forget_outdated(self, stage: str, current: Collection[str], among: Collection[str] | None = None) -> None:
        """Forget the results and journals of a stage but those of the `current` items: they were made of something that
        is no longer so. Of `among`, if that is given; failures stay, to be tried again."""
        with self._database.writing() as connection:
            for table in ("results", "journal"):
                rows = connection.execute(f"SELECT DISTINCT item_id FROM {table} WHERE stage = ?", (stage,)).fetchall()
                stored = {restored(key) for (key,) in rows}
                outdated = (stored if among is None else stored.intersection(among)).difference(current)
                connection.executemany(
                    f"DELETE FROM {table} WHERE stage = ? AND item_id = ?",
                    ((stage, storable(item_id)) for item_id in outdated),
                )

    def items(self, stage: str) -> set[str]:
        """The ids of those items of a stage of which a result or a journal is kept."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT item_id FROM results WHERE stage = ? UNION SELECT item_id FROM journal WHERE stage = ?",
                (stage, stage),
            ).fetchall()
        return {restored(key) for (key,) in rows}


def _value(output: str | bytes) -> Any:
    """The JSON value of a stored output. Raises IndexStateError for one that is not what was written."""
    try:
        return json.loads(restored(output))
    except ValueError as error:
        raise IndexStateError(
            f"A stored answer of the index is damaged ({error}). Restore the index from a copy, or index again."
        ) from error


def failure_id(stage: str, item_id: str) -> str:
    return content_id(stage, item_id)


_TABLES_OF_ITEMS = ("results", "journal", "failures")
_SUMS = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"


def _note_failure(connection: sqlite3.Connection, failure: Failure) -> None:
    id = failure_id(failure.stage, failure.item_id)
    data = storable(codec.dumps(failure))
    connection.execute(
        "INSERT INTO failures (id, stage, item_id, data, sum) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET data = excluded.data, sum = excluded.sum",
        (id, failure.stage, storable(failure.item_id), data, codec.checksum(id, data)),
    )
