"""Keeps vectors in a collection of a Qdrant server."""

import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from kraq_dspy.errors import EncoderMismatchError, IndexStateError, MissingExtraError
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
    from qdrant_client import QdrantClient


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
        self._words = WordWeights(language)
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

        rows = checked_vectors(vectors, self._dimension, len(ids))
        for start, end in batches(len(ids)):
            points = []
            for i in range(start, end):
                vector: dict[str, Any] = {DENSE: rows[i].tolist()}
                if texts is not None and (weights := self._words.of_document(texts[i])):
                    vector[SPARSE] = models.SparseVector(indices=weights[0], values=weights[1])
                payload = {TAGS: tags_of(payloads[i]) if payloads else []}
                points.append(models.PointStruct(id=ids[i], vector=vector, payload=payload))
            with self._errors():
                self._client.upsert(self._collection, points, wait=True)

    def delete(self, ids: Collection[str]) -> None:
        from qdrant_client import models

        gone = list(ids)
        for start, end in batches(len(gone)):
            with self._errors():
                self._client.delete(self._collection, models.PointIdsList(points=list(gone[start:end])), wait=True)

    def ids(self) -> set[str]:
        point_ids: set[str] = set()
        offset = None
        with self._errors():
            while True:
                records, offset = self._client.scroll(
                    self._collection, limit=10 * BATCH, offset=offset, with_payload=False, with_vectors=False
                )
                point_ids.update(hex_id(record.id) for record in records)
                if offset is None:
                    return point_ids

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for start, end in batches(len(ids)):
            with self._errors():
                records = self._client.retrieve(
                    self._collection, list(ids[start:end]), with_payload=False, with_vectors=[DENSE]
                )
            for record in records:
                vector: Any = record.vector
                by_id[hex_id(record.id)] = vector[DENSE]
        return stacked(ids, by_id, self._dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        from qdrant_client import models

        rows = checked_vectors(vectors, self._dimension)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            requests = [
                models.QueryRequest(query=rows[row].tolist(), using=DENSE, limit=limit, filter=condition)
                for row in wanted
            ]
            with self._errors():
                replies = self._client.query_batch_points(self._collection, requests)
            return hits_of(reply.points for reply in replies)

        return best_hits(ask, len(rows), k)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        from qdrant_client import models

        weights = self._words.of_query(text)
        condition = self._filter(exclude, filters)

        def ask(wanted: Sequence[int], limit: int) -> list[Hits]:
            assert weights is not None
            query = models.SparseVector(indices=weights[0], values=weights[1])
            with self._errors():
                reply = self._client.query_points(
                    self._collection, query=query, using=SPARSE, limit=limit, query_filter=condition
                )
            return hits_of([reply.points])

        hits = best_hits(ask, 1 if weights else 0, k)
        return hits[0] if hits else []

    def close(self) -> None:
        """A client that was handed in stays open: it is its owner's."""
        if self._owned:
            self._client.close()

    def _create_or_check(self) -> None:
        from qdrant_client import models

        if self._client.collection_exists(self._collection):
            vectors: Any = self._client.get_collection(self._collection).config.params.vectors
            stored = vectors[DENSE].size if isinstance(vectors, dict) and DENSE in vectors else 0
            if stored != self._dimension:
                raise EncoderMismatchError(other_dimension(self._collection, stored, self._dimension))
            return
        self._client.create_collection(
            self._collection,
            vectors_config={DENSE: models.VectorParams(size=self._dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")  # the client's local mode
            self._client.create_payload_index(self._collection, TAGS, models.PayloadSchemaType.KEYWORD)

    @staticmethod
    def _filter(exclude: Collection[str], filters: Filters | None) -> Any:
        from qdrant_client import models

        must: list[Any] = [
            models.FieldCondition(key=TAGS, match=models.MatchAny(any=tags)) for tags in alternatives(filters)
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
