"""Finds records by the embeddings of their short texts (entities, reports, summaries), in a store of their own."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.store.sync import Point, sync_vectors
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Embedder, Filters, Progress, SilentProgress, Vectors, VectorStore
from kraq_dspy.records import content_id

logger = logging.getLogger(__name__)


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
        self._point_of = {record_id: content_id("text", record_id, text) for record_id, text in texts.items()}
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
                "copy, or mend it: kraq check DIR --repair"
            ) from error
