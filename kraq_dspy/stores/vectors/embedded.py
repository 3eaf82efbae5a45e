"""Keeps vectors in a Qdrant Edge shard: the engine in this process, its files in the index folder."""

import json
import logging
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy.errors import EncoderMismatchError, IndexLockedError, IndexStateError
from kraq_dspy.files import replaced
from kraq_dspy.stores.vectors.points import BATCH, DENSE, SPARSE, TAGS, PointStore, Weights, other_dimension

if TYPE_CHECKING:
    import qdrant_edge

logger = logging.getLogger(__name__)

HNSW_ABOVE = 50_000
"""Points from which `EdgeVectorStore.optimize` builds a graph; below it the exact search is fast enough."""

SPARE_BYTES = 64 << 20
"""Disk space that must stay free: Edge maps its files into memory, and a full disk would kill the process."""

OPEN_BYTES = 16 << 20
"""Disk space that must be free to open a shard at all, for the same reason: Edge makes files when it loads one."""


class EdgeVectorStore(PointStore):
    """A Qdrant Edge shard in the folder `path`, made when it is not there. One process at a time; safe for threads.

    `language` chooses stop words and stemmer of the BM25 index. Raises EncoderMismatchError when the shard holds
    vectors of another dimension, IndexLockedError when another process has it open, IndexStateError when it cannot be
    read.
    """

    def __init__(self, path: Path, dimension: int, *, language: str = "english") -> None:
        super().__init__(dimension, language)
        self._path = path
        self._write_lock = threading.Lock()
        self._closed = False
        if not path.exists():
            self._create()
        self._shard = self._load()

    def count(self) -> int:
        import qdrant_edge as edge

        with self._errors():
            return self._shard.count(edge.CountRequest(exact=True))

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
        if stored is not None and stored != self.dimension:
            raise EncoderMismatchError(other_dimension(str(self._path), stored, self.dimension))
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
            vectors={DENSE: edge.EdgeVectorParams(size=self.dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=HNSW_ABOVE * self.dimension * 4 // 1024),
        )

    def _sparse(self, weights: Weights) -> Any:
        import qdrant_edge as edge

        return edge.SparseVector(indices=weights[0], values=weights[1])

    def _point(self, point_id: str, vector: dict[str, Any], payload: dict[str, list[str]]) -> Any:
        import qdrant_edge as edge

        return edge.Point(point_id, vector, payload)

    def _write(self, points: list[Any]) -> None:
        import qdrant_edge as edge

        self._require_space(4 * self.dimension * len(points))
        with self._write_lock, self._errors():
            self._shard.update(edge.UpdateOperation.upsert_points(points))

    def _remove(self, ids: list[str]) -> None:
        import qdrant_edge as edge

        with self._write_lock, self._errors():
            self._shard.update(edge.UpdateOperation.delete_points(list(ids)))

    def _page(self, offset: Any) -> tuple[Iterable[Any], Any]:
        import qdrant_edge as edge

        request = edge.ScrollRequest(offset=offset, limit=10 * BATCH, with_payload=False, with_vector=False)
        with self._errors():
            return self._shard.scroll(request)

    def _records(self, ids: list[str]) -> Iterable[Any]:
        with self._errors():
            return self._shard.retrieve(list(ids), False, [DENSE])

    def _condition(self, one_of: list[list[str]], exclude: Collection[str]) -> Any:
        import qdrant_edge as edge

        must: list[Any] = [edge.FieldCondition(TAGS, match=edge.MatchAny(tags)) for tags in one_of]
        must_not: list[Any] = [edge.HasIdCondition(set(exclude))] if exclude else []
        return edge.Filter(must=must or None, must_not=must_not or None) if must or must_not else None

    def _query(self, queries: list[Any], using: str, limit: int, condition: Any) -> Iterable[Iterable[Any]]:
        import qdrant_edge as edge

        requests = [
            edge.QueryRequest(limit=limit, query=edge.Query.Nearest(query, using=using), filter=condition)
            for query in queries
        ]
        with self._errors():
            return self._shard.query_batch(edge.QueryBatchRequest(requests))

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
