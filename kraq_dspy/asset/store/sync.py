"""Brings a vector store up to date with texts: embeds what is missing, drops what is gone."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kraq_dspy.ports import Progress, Vectors, VectorStore
from kraq_dspy.records import Chunk

T = TypeVar("T")

BATCH = 256  # texts embedded at once: a server's four batches of 64 at the same time


@dataclass(frozen=True, slots=True)
class Point:
    """A text to be embedded; `payload` is what filters ask about."""

    id: str
    text: str
    payload: Mapping[str, Any] = field(default_factory=dict)


def chunk_point(chunk: Chunk) -> Point:
    return Point(chunk.id, chunk.passage, {**chunk.metadata, "document_id": chunk.document_id})


def sync_vectors(
    store: VectorStore,
    ids: Collection[str],
    points: Iterable[Point],
    encode: Callable[[Sequence[str]], Vectors],
    stage: str,
    progress: Progress,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Make `ids` the points of `store`; returns how many were missing. `points` are read only where some are.

    A point that is there is not embedded again, so an id has to change with its text. A batch is on disk before the
    next is embedded, and where `is_stopped()` says so the next is left for another run.
    """
    stored = store.ids()
    missing = set(ids) - stored
    store.delete(stored.difference(ids))
    progress.start(stage, len(ids))
    progress.advance(stage, len(ids) - len(missing))
    absent = (point for point in points if point.id in missing) if missing else ()
    embed_points(store, absent, encode, stage, progress, is_stopped=is_stopped)
    return len(missing)


def embed_points(
    store: VectorStore,
    points: Iterable[Point],
    encode: Callable[[Sequence[str]], Vectors],
    stage: str,
    progress: Progress,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Put points into `store`, in batches as `sync_vectors` does, for a stage that has begun."""
    for batch in batches(points, BATCH):
        if is_stopped():
            return
        texts = [point.text for point in batch]
        store.upsert([point.id for point in batch], encode(texts), texts, [point.payload for point in batch])
        progress.advance(stage, len(batch))
    progress.finish(stage)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch
