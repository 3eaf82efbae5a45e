"""Brings a vector store up to date with texts: embeds what is missing, drops what is gone."""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kraq_dspy.errors import UnembeddableError
from kraq_dspy.ports import Progress, Vectors, VectorStore
from kraq_dspy.records import Chunk

logger = logging.getLogger(__name__)

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


def log_left_out(point_id: str, reason: str) -> None:
    logger.warning("The encoder makes no vector of %s: %s", point_id, reason)


def sync_vectors(
    store: VectorStore,
    ids: Collection[str],
    points: Iterable[Point],
    encode: Callable[[Sequence[str]], Vectors],
    stage: str,
    progress: Progress,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    left_out: Callable[[str, str], None] = log_left_out,
) -> int:
    """Make `ids` the points of `store`; returns how many were missing. `points` are read only where some are.

    A point that is there is not embedded again, so an id has to change with its text. A batch is on disk before the
    next is embedded, and where `is_stopped()` says so the next is left for another run. A text that the encoder makes
    no vector of has zeros for one, so that it is found by its words alone; `left_out` is told of its id and the reason.
    """
    stored = store.ids()
    missing = set(ids) - stored
    store.delete(stored.difference(ids))
    progress.start(stage, len(ids))
    progress.advance(stage, len(ids) - len(missing))
    absent = (point for point in points if point.id in missing) if missing else ()
    embed_points(store, absent, encode, stage, progress, is_stopped=is_stopped, left_out=left_out)
    return len(missing)


def embed_points(
    store: VectorStore,
    points: Iterable[Point],
    encode: Callable[[Sequence[str]], Vectors],
    stage: str,
    progress: Progress,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    left_out: Callable[[str, str], None] = log_left_out,
) -> None:
    """Put points into `store`, in batches as `sync_vectors` does, for a stage that has begun."""
    for batch in batches(points, BATCH):
        if is_stopped():
            return
        texts = [point.text for point in batch]
        try:
            vectors = encode(texts)
        except UnembeddableError as error:
            vectors = error.vectors
            for place, reason in error.reasons.items():
                left_out(batch[place].id, reason)
        store.upsert([point.id for point in batch], vectors, texts, [point.payload for point in batch])
        progress.advance(stage, len(batch))
    progress.finish(stage)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch
