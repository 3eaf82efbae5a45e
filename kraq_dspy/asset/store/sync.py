"""Brings a vector store up to date with texts: embeds what is missing, drops what is gone; finds records by them."""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.recent import Recent
from kraq_dspy.errors import IndexStateError, UnembeddableError
from kraq_dspy.ports import Embedder, Filters, Progress, SilentProgress, Vectors, VectorStore
from kraq_dspy.records import Chunk, content_id

logger = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 256  # texts embedded at once: a server's four batches of 64 at the same time
REMEMBERED = 4096  # texts whose vectors are kept meanwhile: a community and one within it often ask the same question


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
    left_out: Callable[[str, str], None] | None = None,
) -> int:
    """Make `ids` the points of `store`; returns how many were missing. `points` are read only if some are.

    A point that is there is not embedded again, so an id has to change with its text. A batch is on disk before the
    next is embedded, and where `is_stopped()` says so the next is left for another run. Points with the same text share
    one embedding. A text that the encoder makes no vector of has zeros for one, so that it is found by its words alone;
    `left_out` is told its id and the reason.
    """
    stored = store.ids()
    missing = set(ids) - stored
    store.delete(stored.difference(ids))
    progress.start(stage, len(ids))
    progress.advance(stage, len(ids) - len(missing))

    unembeddable: dict[str, str] = {}
    vectors_by_text = Recent[str, Vectors](REMEMBERED)

    def encode_new(texts: list[str]) -> Vectors:
        try:
            return encode(texts)
        except UnembeddableError as error:
            unembeddable.update({texts[place]: reason for place, reason in error.reasons.items()})
            vectors: Vectors = error.vectors
            return vectors

    for batch in batches((point for point in points if point.id in missing) if missing else (), BATCH):
        if is_stopped():
            return len(missing)
        texts = [point.text for point in batch]
        vectors = np.stack(vectors_by_text.of(texts, encode_new))
        for point in batch:
            if point.text in unembeddable:
                reason = unembeddable[point.text]
                logger.warning("The encoder makes no vector of %s: %s", point.id, reason)
                if left_out is not None:
                    left_out(point.id, reason)
        store.upsert([point.id for point in batch], vectors, texts, [point.payload for point in batch])
        progress.advance(stage, len(batch))

    progress.finish(stage)
    return len(missing)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch


def text_point(record_id: str, text: str) -> str:
    """The id of the point of a record's text."""
    return content_id("text", record_id, text)


class TextVectors(SharedByCopies):
    """Finds records by their texts. A point's id depends on the text, so a record whose text changed is embedded anew.

    `texts` and `payloads` (what `filters` ask about) are by record id. Safe for threads once `sync` has run.
    """

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        texts: Mapping[str, str],
        payloads: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self._texts = texts
        self._payloads = payloads or {}
        self._point_of = {record_id: text_point(record_id, text) for record_id, text in texts.items()}
        self._record_of = {point: record_id for record_id, point in self._point_of.items()}

    def sync(self, stage: str, progress: Progress | None = None) -> int:
        """Embed what is missing, a batch at a time, and drop what is gone; returns how many were embedded."""
        points = (
            Point(point, self._texts[record_id], self._payloads.get(record_id, {}))
            for record_id, point in self._point_of.items()
        )
        encode = self.embedder.encode_passages
        embedded = sync_vectors(self.store, self._record_of.keys(), points, encode, stage, progress or SilentProgress())
        if embedded:
            logger.info("%s: embedded %d of %d texts", stage, embedded, len(self._texts))
        return embedded

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """float32 `[n_ids, dimension]` in the order of the record ids `ids`."""
        return self.store.vectors([self._point_of[record_id] for record_id in ids])

    def __call__(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[str] = (),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[tuple[str, float]]:
        if vector is None:
            vector = self.embedder.encode_queries([text])[0]

        excluded = {self._point_of[record_id] for record_id in exclude if record_id in self._point_of}
        [scored] = self.store.search(vector[None, :], k, exclude=excluded, filters=filters)

        try:
            return [(self._record_of[point], cosine) for point, cosine in scored]
        except KeyError as error:
            raise IndexStateError(
                f"The vectors of texts are damaged: they have the unknown point {error}. Restore the index from a "
                "copy, or repair it: kraq check DIR --repair"
            ) from error
