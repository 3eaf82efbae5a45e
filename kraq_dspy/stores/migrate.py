"""Brings an index of an earlier schema up to date, a version at a time, without asking a model."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from kraq_dspy.errors import IndexLockedError, IndexStateError
from kraq_dspy.stores import manifest as manifests
from kraq_dspy.stores import states
from kraq_dspy.stores.copying import copy_file
from kraq_dspy.stores.database import translated_errors
from kraq_dspy.stores.lock import FileLock
from kraq_dspy.stores.vectors import LocalVectorStore

_AT_ONCE = 1000


def migrate(root: Path) -> int:
    """The schema version that the index had; nothing is done where it is ours.

    A process that is killed meanwhile leaves the index as it was, or as it is to be. Raises IndexStateError where the
    folder cannot be written, IndexLockedError while another process has the index.
    """
    before = int(manifests.read_fields(root)["schema_version"])
    if before < manifests.SCHEMA_VERSION:
        lock = FileLock(root / "lock")
        try:
            lock.acquire()
        except IndexLockedError:
            raise
        except IndexStateError as error:
            raise IndexStateError(
                f"{str(root)!r} has schema version {before} and has to be brought to {manifests.SCHEMA_VERSION} before "
                "it is read; its folder cannot be written. Copy it to a place of yours, and run: kraq migrate COPY"
            ) from error
        try:
            while (version := int(manifests.read_fields(root)["schema_version"])) < manifests.SCHEMA_VERSION:
                MIGRATIONS[version](root)
        finally:
            lock.release()
    return before


def migrate_all(root: Path) -> int:
    """As `migrate`, with the indexes that lie in the index, such as a summarised corpus."""
    before = migrate(root)
    for inner in sorted(root.glob(f"*/{manifests.MANIFEST}")):
        if inner.parent.name != states.DRAFT:
            migrate_all(inner.parent)
    return before


def _to_states(root: Path) -> None:
    """Version 1 had one index.db and shards of Qdrant Edge, which one process at a time could open."""
    fields = manifests.read_fields(root)
    if not (root / states.DATABASE).is_file():
        raise IndexStateError(
            f"{str(root)!r} is damaged: it has no {states.DATABASE}. Restore it from a copy, or delete the folder and "
            "index again."
        )
    draft = states.begin_empty(root)
    with states.writing_to(root), translated_errors(root / states.DATABASE):
        with (
            closing(sqlite3.connect(root / states.DATABASE)) as old,
            closing(sqlite3.connect(draft / states.DATABASE)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA user_version = 2")
        for shard in sorted((root / states.VECTORS).glob("*/edge_config.json")):
            _take_over(shard.parent, draft / states.VECTORS / shard.parent.name, fields["encoder_dimension"])
        for file in root.glob("raptor.json"):
            copy_file(file, draft / file.name)
        fields = {**fields, "schema_version": 2, "state": ""}
        manifests.write_fields(draft, fields)
        if fields["complete"]:
            states.publish(root)
        else:
            manifests.write_fields(root, fields)
        shutil.rmtree(root / states.VECTORS, ignore_errors=True)
        for left in (*root.glob(f"{states.DATABASE}*"), *root.glob("raptor.json")):
            left.unlink()


def _take_over(shard: Path, path: Path, dimension: int) -> None:
    import qdrant_edge as edge

    try:
        points = edge.EdgeShard.load(str(shard))
    except Exception as error:  # Edge raises nothing more precise
        raise IndexStateError(
            f"The vectors in {str(shard)!r} cannot be read: {error}. Delete that folder and run again: kraq migrate; "
            "then make the vectors anew: kraq resume"
        ) from error
    store = LocalVectorStore(path, dimension)
    offset: Any = None
    while True:
        records, offset = points.scroll(
            edge.ScrollRequest(offset=offset, limit=_AT_ONCE, with_payload=True, with_vector=True)
        )
        store.take_over([_point(record) for record in records])
        if offset is None:
            break
    points.close()
    store.seal()
    store.close()


def _point(record: Any) -> tuple[str, Any, list[int], list[float], list[str]]:
    words = record.vector.get("bm25")
    return (
        str(record.id).replace("-", ""),
        record.vector["dense"],
        list(words.indices) if words is not None else [],
        list(words.values) if words is not None else [],
        list((record.payload or {}).get("tags", ())),
    )


MIGRATIONS: dict[int, Callable[[Path], None]] = {1: _to_states}
"""By the schema version that it starts from; each leaves the index in the next one."""
