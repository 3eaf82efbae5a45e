"""Vectors and words of chunks and questions: Qdrant Edge in the index folder, or a Qdrant server.

Both keep a point's dense vector, its BM25 term weights (Edge's own tokenizer and stemmer; the engine multiplies by the
inverse document frequency) and its payload as tags. Both satisfy `ports.VectorStore`.
"""

import json
import logging
import shutil
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kraq_dspy.errors import (
    EncoderMismatchError,
    IndexLockedError,
    IndexStateError,
    MissingExtraError,
    UnknownRecordError,
)
from kraq_dspy.files import replaced
from kraq_dspy.ports import Filters, Vectors
from kraq_dspy.stores.tags import alternatives, tags_of

if TYPE_CHECKING:
    import qdrant_edge
    from qdrant_client import QdrantClient

logger = logging.getLogger(__name__)

BATCH = 1000
"""Points written at once; a killed process leaves whole batches."""

HNSW_ABOVE = 50_000
"""Points from which `EdgeVectorStore.optimize` builds a graph; below it the exact search is fast enough."""

SPARE_BYTES = 64 << 20
"""Disk space that must stay free: Edge maps its files into memory, and a full disk would kill the process."""

OPEN_BYTES = 16 << 20
"""Disk space that must be free to open a shard at all, for the same reason: Edge makes files when it loads one."""

_DENSE, _SPARSE, _TAGS = "dense", "bm25", "tags"
_SPARE = 8  # hits asked for beyond k, so that ties at the end can be seen

Hits = list[tuple[str, float]]


class EdgeVectorStore:
    """A Qdrant Edge shard in the folder `path`, made when it is not there. One process at a time; safe for threads.

    `language` chooses stop words and stemmer of the BM25 index. Raises EncoderMismatchError when the shard holds
    vectors of another dimension, IndexLockedError when another process has it open, IndexStateError when it cannot be
    read.
    """

    def __init__(self, path: Path, dimension: int, *, language: str = "english") -> None:
        self._path = path
        self._dimension = dimension
        self._words = _Words(language)
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

        rows = _checked(vectors, self._dimension, len(ids))
        for start, end in _batches(len(ids)):
            points = []
            for i in range(start, end):
                vector: dict[str, Any] = {_DENSE: rows[i].tolist()}
                if texts is not None and (weights := self._words.of_document(texts[i])):
                    vector[_SPARSE] = edge.SparseVector(indices=weights[0], values=weights[1])
                points.append(edge.Point(ids[i], vector, {_TAGS: tags_of(payloads[i]) if payloads else []}))
            self._require_space(rows[start:end].nbytes)
            with self._write_lock, self._errors():
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def delete(self, ids: Collection[str]) -> None:
        import qdrant_edge as edge

        gone = list(ids)
        for start, end in _batches(len(gone)):
            with self._write_lock, self._errors():
                self._shard.update(edge.UpdateOperation.delete_points(list(gone[start:end])))

    def ids(self) -> set[str]:
        import qdrant_edge as edge

        found: set[str] = set()
        offset = None
        with self._errors():
            while True:
                records, offset = self._shard.scroll(
                    edge.ScrollRequest(offset=offset, limit=10 * BATCH, with_payload=False, with_vector=False)
                )
                found.update(_hex(record.id) for record in records)
                if offset is None:
                    return found

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for start, end in _batches(len(ids)):
            with self._errors():
                for record in self._shard.retrieve(list(ids[start:end]), False, [_DENSE]):
                    vector: Any = record.vector
                    by_id[_hex(record.id)] = vector[_DENSE]
        return _stacked(ids, by_id, self._dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        import qdrant_edge as edge

        rows = _checked(vectors, self._dimension)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            requests = [
                edge.QueryRequest(
                    limit=limit, query=edge.Query.Nearest(rows[row].tolist(), using=_DENSE), filter=condition
                )
                for row in wanted
            ]
            with self._errors():
                return _hits(self._shard.query_batch(edge.QueryBatchRequest(requests)))

        return _best(ask, len(rows), k)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        import qdrant_edge as edge

        weights = self._words.of_query(text)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            assert weights is not None
            query = edge.Query.Nearest(edge.SparseVector(indices=weights[0], values=weights[1]), using=_SPARSE)
            with self._errors():
                return _hits([self._shard.query(edge.QueryRequest(limit=limit, query=query, filter=condition))])

        found = _best(ask, 1 if weights else 0, k)
        return found[0] if found else []

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
            shard.update(edge.UpdateOperation.create_field_index(_TAGS, edge.PayloadSchemaType.Keyword))
            shard.flush()
            shard.close()

    def _require_space(self, n_bytes: int) -> None:
        """Room for the vectors in the shard and in its log, with as much for words and payloads."""
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
        found = self._stored_dimension()
        if found is not None and found != self._dimension:
            raise EncoderMismatchError(_other_dimension(str(self._path), found, self._dimension))
        with self._errors():
            return edge.EdgeShard.load(str(self._path), self._config())

    def _stored_dimension(self) -> int | None:
        """None when the file is not as we know it: then the engine decides whether the shard can be read."""
        try:
            config = json.loads((self._path / "edge_config.json").read_text("utf-8"))
            return int(config["vectors"][_DENSE]["size"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _config(self) -> "qdrant_edge.EdgeConfig":
        import qdrant_edge as edge

        return edge.EdgeConfig(
            vectors={_DENSE: edge.EdgeVectorParams(size=self._dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={_SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=HNSW_ABOVE * self._dimension * 4 // 1024),
        )

    @staticmethod
    def _filter(exclude: Collection[str], filters: Filters | None) -> "qdrant_edge.Filter | None":
        import qdrant_edge as edge

        must: list[Any] = [edge.FieldCondition(_TAGS, match=edge.MatchAny(tags)) for tags in alternatives(filters)]
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


class QdrantVectorStore:
    """A collection of a Qdrant server, made when it is not there. Many processes at a time; safe for threads.

    `server` is a URL or a `qdrant_client.QdrantClient`. Raises EncoderMismatchError when the collection holds vectors
    of another dimension, IndexStateError when the server cannot be reached or refuses.
    """

    def __init__(
        self,
        server: "str | QdrantClient",
        collection: str,
        dimension: int,
        *,
        api_key: str | None = None,
        language: str = "english",
    ) -> None:
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise MissingExtraError("qdrant-client", "all", "A Qdrant server as vector store") from error
        self._owned = isinstance(server, str)
        self._client = (
            QdrantClient(url=server, api_key=api_key, check_compatibility=False) if isinstance(server, str) else server
        )
        self._collection = collection
        self._dimension = dimension
        self._words = _Words(language)
        self._one_at_a_time: AbstractContextManager[Any] = (
            threading.RLock() if _is_local(self._client) else nullcontext()
        )
        with self._errors():
            self._create_or_check()

    @property
    def dimension(self) -> int:
        return self._dimension

    def count(self) -> int:
        with self._errors():
            return self._client.count(self._collection, exact=True).count

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        from qdrant_client import models

        rows = _checked(vectors, self._dimension, len(ids))
        for start, end in _batches(len(ids)):
            points = []
            for i in range(start, end):
                vector: dict[str, Any] = {_DENSE: rows[i].tolist()}
                if texts is not None and (weights := self._words.of_document(texts[i])):
                    vector[_SPARSE] = models.SparseVector(indices=weights[0], values=weights[1])
                payload = {_TAGS: tags_of(payloads[i]) if payloads else []}
                points.append(models.PointStruct(id=ids[i], vector=vector, payload=payload))
            with self._errors():
                self._client.upsert(self._collection, points, wait=True)

    def delete(self, ids: Collection[str]) -> None:
        from qdrant_client import models

        gone = list(ids)
        for start, end in _batches(len(gone)):
            with self._errors():
                self._client.delete(self._collection, models.PointIdsList(points=list(gone[start:end])), wait=True)

    def ids(self) -> set[str]:
        found: set[str] = set()
        offset = None
        with self._errors():
            while True:
                records, offset = self._client.scroll(
                    self._collection, limit=10 * BATCH, offset=offset, with_payload=False, with_vectors=False
                )
                found.update(_hex(record.id) for record in records)
                if offset is None:
                    return found

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for start, end in _batches(len(ids)):
            with self._errors():
                records = self._client.retrieve(
                    self._collection, list(ids[start:end]), with_payload=False, with_vectors=[_DENSE]
                )
            for record in records:
                vector: Any = record.vector
                by_id[_hex(record.id)] = vector[_DENSE]
        return _stacked(ids, by_id, self._dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        from qdrant_client import models

        rows = _checked(vectors, self._dimension)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            requests = [
                models.QueryRequest(query=rows[row].tolist(), using=_DENSE, limit=limit, filter=condition)
                for row in wanted
            ]
            with self._errors():
                replies = self._client.query_batch_points(self._collection, requests)
            return _hits(reply.points for reply in replies)

        return _best(ask, len(rows), k)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        from qdrant_client import models

        weights = self._words.of_query(text)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            assert weights is not None
            query = models.SparseVector(indices=weights[0], values=weights[1])
            with self._errors():
                reply = self._client.query_points(
                    self._collection, query=query, using=_SPARSE, limit=limit, query_filter=condition
                )
            return _hits([reply.points])

        found = _best(ask, 1 if weights else 0, k)
        return found[0] if found else []

    def close(self) -> None:
        """A client that was handed in stays open: it is its owner's."""
        if self._owned:
            self._client.close()

    def _create_or_check(self) -> None:
        from qdrant_client import models

        if self._client.collection_exists(self._collection):
            vectors: Any = self._client.get_collection(self._collection).config.params.vectors
            found = vectors[_DENSE].size if isinstance(vectors, dict) and _DENSE in vectors else 0
            if found != self._dimension:
                raise EncoderMismatchError(_other_dimension(self._collection, found, self._dimension))
            return
        self._client.create_collection(
            self._collection,
            vectors_config={_DENSE: models.VectorParams(size=self._dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={_SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")  # the client's local mode
            self._client.create_payload_index(self._collection, _TAGS, models.PayloadSchemaType.KEYWORD)

    @staticmethod
    def _filter(exclude: Collection[str], filters: Filters | None) -> Any:
        from qdrant_client import models

        must: list[Any] = [
            models.FieldCondition(key=_TAGS, match=models.MatchAny(any=tags)) for tags in alternatives(filters)
        ]
        must_not: list[Any] = [models.HasIdCondition(has_id=list(exclude))] if exclude else []
        return models.Filter(must=must or None, must_not=must_not or None) if must or must_not else None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from qdrant_client.http.exceptions import ApiException

        try:
            with self._one_at_a_time:
                yield
        except ApiException as error:
            raise IndexStateError(
                f"The Qdrant server with the collection {self._collection!r} failed: {error}. Check that it runs, that "
                "[store] url is its address, and that the key is right."
            ) from error


def _is_local(client: "QdrantClient") -> bool:
    """The client's own in-memory mode is not safe for threads."""
    from qdrant_client.local.qdrant_local import QdrantLocal

    return isinstance(client._client, QdrantLocal)


class _Words:
    """Text as BM25 term weights: (indices, values), or None for a text without words."""

    def __init__(self, language: str) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        # The tokenizer by words takes a sentence of Chinese or Japanese for one word.
        self._model = Bm25(Bm25Config(language=language, tokenizer=TokenizerType.Multilingual, ascii_folding=True))

    def of_document(self, text: str) -> tuple[list[int], list[float]] | None:
        return self._weights(self._model.embed_document, text)

    def of_query(self, text: str) -> tuple[list[int], list[float]] | None:
        return self._weights(self._model.embed_query, text)

    @staticmethod
    def _weights(embed: Callable[[str], Any], text: str) -> tuple[list[int], list[float]] | None:
        sparse = embed(text.encode("utf-8", "replace").decode("utf-8"))  # lone surrogates become "?"
        return (sparse.indices, sparse.values) if sparse.indices else None


def _best(ask: Callable[[Sequence[int], int], list[Hits]], n_rows: int, k: int) -> list[Hits]:
    """The `k` best hits of each row, ties in the order of the ids.

    An engine orders ties as it likes, also those at place k. So more hits are asked for, until the last one scores
    less than the one at place k.
    """
    if k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more.")
    best: list[Hits] = [[] for _ in range(n_rows)]
    open_rows = list(range(n_rows))
    limit = k + _SPARE
    while open_rows:
        tied = []
        for row, hits in zip(open_rows, ask(open_rows, limit), strict=True):
            hits.sort(key=lambda hit: (-hit[1], hit[0]))
            if len(hits) == limit and hits[k - 1][1] == hits[-1][1]:
                tied.append(row)
            else:
                best[row] = hits[:k]
        open_rows = tied
        limit *= 4
    return best


def _hits(replies: Any) -> list[Hits]:
    return [[(_hex(point.id), float(point.score)) for point in points] for points in replies]


def _hex(point_id: Any) -> str:
    return str(point_id).replace("-", "")


def _batches(n: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + BATCH, n)) for start in range(0, n, BATCH))


def _checked(vectors: Vectors, dimension: int, n_rows: int | None = None) -> Vectors:
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"Vectors have the shape {rows.shape}; expected [n, {dimension}].")
    if rows.shape[1] != dimension and len(rows):
        raise EncoderMismatchError(_other_dimension("The store", dimension, rows.shape[1]))
    if n_rows is not None and len(rows) != n_rows:
        raise ValueError(f"{n_rows} ids but {len(rows)} vectors.")
    if not np.isfinite(rows).all():
        raise ValueError("A vector holds a value that is not finite; the encoder that made it is at fault.")
    return rows


def _stacked(ids: Sequence[str], by_id: Mapping[str, Any], dimension: int) -> Vectors:
    for wanted in ids:
        if wanted not in by_id:
            raise UnknownRecordError(f"No vector is stored for the id {wanted!r}.")
    return np.array([by_id[wanted] for wanted in ids], dtype=np.float32).reshape(len(ids), dimension)


def _other_dimension(where: str, stored: int, given: int) -> str:
    return (
        f"{where} holds {stored}-dimensional vectors, and {given}-dimensional ones were given. "
        "Use the encoder that the index was built with, or index again with this one."
    )
