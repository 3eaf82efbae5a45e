"""Keeps vectors in a Qdrant Edge shard: the engine in this process, its files in the index folder."""

import json
import logging
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy.errors import EncoderMismatchError, IndexLockedError, IndexStateError
from kraq_dspy.files import replaced
from kraq_dspy.ports import Filters, Vectors
from kraq_dspy.stores.tags import alternatives, tags_of
from kraq_dspy.stores.vectors.points import (
    BATCH,
    DENSE,
    SPARSE,
    TAGS,
    Hits,
    WordWeights,
    batches,
    best_hits,
    checked_vectors,
    hex_id,
    hits_of,
    other_dimension,
    stacked,
)

if TYPE_CHECKING:
    import qdrant_edge

logger = logging.getLogger(__name__)

HNSW_ABOVE = 50_000
"""Points from which `EdgeVectorStore.optimize` builds a graph; below it the exact search is fast enough."""

SPARE_BYTES = 64 << 20
"""Disk space that must stay free: Edge maps its files into memory, and a full disk would kill the process."""

OPEN_BYTES = 16 << 20
"""Disk space that must be free to open a shard at all, for the same reason: Edge makes files when it loads one."""


class EdgeVectorStore:
    """A Qdrant Edge shard in the folder `path`, made when it is not there. One process at a time; safe for threads.

    `language` chooses stop words and stemmer of the BM25 index. Raises EncoderMismatchError when the shard holds
    vectors of another dimension, IndexLockedError when another process has it open, IndexStateError when it cannot be
    read.
    """

    def __init__(self, path: Path, dimension: int, *, language: str = "english") -> None:
        self._path = path
        self._dimension = dimension
        self._words = WordWeights(language)
        self._write_lock = threading.Lock()
        self._closed = False
        if not path.exists():
            self._create()
        self._shard = self._load()

    @property
    def dimension(self) -> int:
        return self._dimension

    def count(self) -> int:
        import qdrant_edge as edge

        with self._errors():
            return self._shard.count(edge.CountRequest(exact=True))

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        import qdrant_edge as edge

        rows = checked_vectors(vectors, self._dimension, len(ids))
        for start, end in batches(len(ids)):
            points = []
            for i in range(start, end):
                vector: dict[str, Any] = {DENSE: rows[i].tolist()}
                if texts is not None and (weights := self._words.of_document(texts[i])):
                    vector[SPARSE] = edge.SparseVector(indices=weights[0], values=weights[1])
                points.append(edge.Point(ids[i], vector, {TAGS: tags_of(payloads[i]) if payloads else []}))
            self._require_space(rows[start:end].nbytes)
            with self._write_lock, self._errors():
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def delete(self, ids: Collection[str]) -> None:
        import qdrant_edge as edge

        gone = list(ids)
        for start, end in batches(len(gone)):
            with self._write_lock, self._errors():
                self._shard.update(edge.UpdateOperation.delete_points(list(gone[start:end])))

    def ids(self) -> set[str]:
        import qdrant_edge as edge

        point_ids: set[str] = set()
        offset = None
        with self._errors():
            while True:
                records, offset = self._shard.scroll(
                    edge.ScrollRequest(offset=offset, limit=10 * BATCH, with_payload=False, with_vector=False)
                )
                point_ids.update(hex_id(record.id) for record in records)
                if offset is None:
                    return point_ids

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for start, end in batches(len(ids)):
            with self._errors():
                for record in self._shard.retrieve(list(ids[start:end]), False, [DENSE]):
                    vector: Any = record.vector
                    by_id[hex_id(record.id)] = vector[DENSE]
        return stacked(ids, by_id, self._dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        import qdrant_edge as edge

        rows = checked_vectors(vectors, self._dimension)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            requests = [
                edge.QueryRequest(
                    limit=limit, query=edge.Query.Nearest(rows[row].tolist(), using=DENSE), filter=condition
                )
                for row in wanted
            ]
            with self._errors():
                return hits_of(self._shard.query_batch(edge.QueryBatchRequest(requests)))

        return best_hits(ask, len(rows), k)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        import qdrant_edge as edge

        weights = self._words.of_query(text)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            assert weights is not None
            query = edge.Query.Nearest(edge.SparseVector(indices=weights[0], values=weights[1]), using=SPARSE)
            with self._errors():
                return hits_of([self._shard.query(edge.QueryRequest(limit=limit, query=query, filter=condition))])

        hits = best_hits(ask, 1 if weights else 0, k)
        return hits[0] if hits else []

    def optimize(self) -> None:
        """Merge what many writes left behind; above `HNSW_ABOVE` points, build the graph for approximate search.

        Building the graph takes minutes at 100,000 points.
        """
        with self._write_lock, self._errors():
            self._shard.optimize()

    def close(self) -> None:
        """Let other processes in. May be called twice.

        A flush that fails (full disk) is only logged: Edge's log has what was written, and is replayed when the store
        is opened again.
        """
        with self._write_lock:
            if self._closed:
                return
            try:
                with self._errors():
                    self._shard.flush()
            except IndexStateError as error:
                logger.warning("Closing without a flush. %s", error)
            self._closed = True
            with self._errors():
                self._shard.close()

    def _create(self) -> None:
        """Under another name first: a process killed half-way leaves nothing that looks like a shard."""
        import qdrant_edge as edge

        with self._errors():
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._require_space(0)
        with self._errors(), replaced(self._path) as new:
            new.mkdir()
            shard = edge.EdgeShard.create(str(new), self._config())
            shard.update(edge.UpdateOperation.create_field_index(TAGS, edge.PayloadSchemaType.Keyword))
            shard.flush()
            shard.close()

    def _require_space(self, n_bytes: int) -> None:
        """Disk for the vectors in the shard and in its log, with as much for words and payloads."""
        free = shutil.disk_usage(self._path.parent).free
        if free < SPARE_BYTES + 4 * n_bytes:
            raise IndexStateError(
                f"The disk with {str(self._path)!r} is full: {free >> 20} MiB are free, and vectors are only written "
                f"while more than {SPARE_BYTES >> 20} are. Free some space and go on; what was written before is kept."
            )

    def _load(self) -> "qdrant_edge.EdgeShard":
        import qdrant_edge as edge

        free = shutil.disk_usage(self._path.parent).free
        if free < OPEN_BYTES:
            raise IndexStateError(
                f"The disk with {str(self._path)!r} is full: {free >> 20} MiB are free, and vectors are only opened "
                f"while {OPEN_BYTES >> 20} are. Free some space and go on; nothing was lost."
            )
        stored = self._stored_dimension()
        if stored is not None and stored != self._dimension:
            raise EncoderMismatchError(other_dimension(str(self._path), stored, self._dimension))
        with self._errors():
            return edge.EdgeShard.load(str(self._path), self._config())

    def _stored_dimension(self) -> int | None:
        """None when the file is not as we know it: then the engine decides whether the shard can be read."""
        try:
            config = json.loads((self._path / "edge_config.json").read_text("utf-8"))
            return int(config["vectors"][DENSE]["size"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _config(self) -> "qdrant_edge.EdgeConfig":
        import qdrant_edge as edge

        return edge.EdgeConfig(
            vectors={DENSE: edge.EdgeVectorParams(size=self._dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=HNSW_ABOVE * self._dimension * 4 // 1024),
        )

    @staticmethod
    def _filter(exclude: Collection[str], filters: Filters | None) -> "qdrant_edge.Filter | None":
        import qdrant_edge as edge

        must: list[Any] = [edge.FieldCondition(TAGS, match=edge.MatchAny(tags)) for tags in alternatives(filters)]
        must_not: list[Any] = [edge.HasIdCondition(set(exclude))] if exclude else []
        return edge.Filter(must=must or None, must_not=must_not or None) if must or must_not else None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ValueError:  # an id that is not a UUID: the caller's mistake
            raise
        except Exception as error:  # Edge raises nothing more precise
            if self._closed:
                raise IndexStateError(f"The vectors in {str(self._path)!r} were closed. Open them again.") from error
            if "WouldBlock" in str(error):
                raise IndexLockedError(
                    f"Another process, or another store in this one, has the vectors in {str(self._path)!r} open, and "
                    "Qdrant Edge serves one at a time. Close it, or use a Qdrant server ([store] url)."
                ) from error
            raise IndexStateError(
                f"The vectors in {str(self._path)!r}: {error}. If the disk is full or the folder cannot be written, "
                "mend that and open the index again; if they are damaged, delete that folder: the next build makes "
                "them again."
            ) from error
