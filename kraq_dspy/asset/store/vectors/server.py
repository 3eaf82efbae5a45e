"""Keeps vectors in a collection of a Qdrant server."""

import json
import math
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from kraq_dspy.asset.consent import require_no_secret
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.asset.store.vectors.points import (
    alternatives,
    checked_vectors,
    document_weights,
    other_dimension,
    query_weights,
    tags_of,
)
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError, needs
from kraq_dspy.ports import Filters, Vectors

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

BATCH = 1000
"""Points written at once; a killed process leaves whole batches."""

_CONFLICT = 409  # what the server answers where there is one already

DENSE, SPARSE, TAGS, CAME, WENT = "dense", "bm25", "tags", "came", "went"

Hits = list[tuple[str, float]]


class QdrantVectorStore:
    """A collection of a Qdrant server, made when it is not there. Many processes at a time; safe for threads.

    `server` is a URL or a `qdrant_client.QdrantClient`. A point says in which `state` of the index it came, and when
    it went: so a store sees the points of its own state alone, while another one writes those of the next. Points
    that went are removed by `forget`. An id has to change with its text, as for all that is shared between states.

    Which of the points that score alike stand at the place `k` is the server's choice.

    Raises EncoderMismatchError when the collection holds vectors of another dimension, IndexStateError when the server
    cannot be reached or refuses.
    """

    def __init__(
        self,
        server: "str | QdrantClient",
        collection: str,
        dimension: int,
        *,
        state: int = 0,
        api_key: str | None = None,
    ) -> None:
        with needs("qdrant-client", "qdrant", "A Qdrant server as vector store"):
            from qdrant_client import QdrantClient
            from qdrant_client.local.qdrant_local import QdrantLocal  # in memory, and not safe for threads

        if isinstance(server, str):
            require_no_secret(server, "The url of the Qdrant server")
        self.dimension = dimension
        self._state = state
        self._owned = isinstance(server, str)
        self._address = f"at {server}" if isinstance(server, str) else "of the client given"
        self._client = (
            QdrantClient(url=server, api_key=api_key, check_compatibility=False) if isinstance(server, str) else server
        )
        self._collection = collection
        self._one_at_a_time: AbstractContextManager[Any] = (
            threading.RLock() if isinstance(self._client._client, QdrantLocal) else nullcontext()
        )
        with self._errors():
            self._create_or_check()

    def count(self) -> int:
        with self._errors():
            return self._client.count(self._collection, count_filter=self._condition(), exact=True).count

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        from qdrant_client import models

        rows = checked_vectors(vectors, self.dimension, len(ids))
        for places in batches(range(len(ids)), BATCH):
            came = self._came([ids[i] for i in places])
            points = []
            for i in places:
                vector: dict[str, Any] = {DENSE: rows[i].tolist()}
                if texts is not None and (weights := document_weights(texts[i])):
                    vector[SPARSE] = models.SparseVector(indices=[*weights], values=[*weights.values()])
                tags = tags_of(payloads[i]) if payloads else []
                payload = {TAGS: tags, CAME: came.get(ids[i], self._state)}
                points.append(models.PointStruct(id=ids[i], vector=vector, payload=payload))
            with self._errors():
                self._client.upsert(self._collection, points, wait=True)

    def delete(self, ids: Collection[str]) -> None:
        from qdrant_client import models

        for some in batches(ids, BATCH):
            came = self._came(some)
            shared = [id for id in some if came.get(id, self._state) < self._state]
            own = [id for id in some if id not in shared]
            with self._errors():
                if shared:
                    self._client.set_payload(self._collection, {WENT: self._state}, list(shared), wait=True)
                if own:
                    self._client.delete(self._collection, models.PointIdsList(points=list(own)), wait=True)

    def forget(self) -> None:
        """Remove the points that are neither in this state nor in the one before it."""
        from qdrant_client import models

        old = models.Filter(must=[models.FieldCondition(key=WENT, range=models.Range(lt=self._state))])
        with self._errors():
            self._client.delete(self._collection, models.FilterSelector(filter=old), wait=True)

    def ids(self) -> set[str]:
        point_ids: set[str] = set()
        offset: Any = None
        while True:
            with self._errors():
                records, offset = self._client.scroll(
                    self._collection,
                    scroll_filter=self._condition(),
                    limit=10 * BATCH,
                    offset=offset,
                    with_payload=False,
                    with_vectors=False,
                )
            point_ids.update(_hex_id(record.id) for record in records)
            if offset is None:
                return point_ids

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for some in batches(ids, BATCH):
            with self._errors():
                records = self._client.retrieve(self._collection, some, with_payload=[CAME, WENT], with_vectors=[DENSE])
            for record in records:
                if self._sees(record):
                    by_id[_hex_id(record.id)] = record.vector[DENSE]  # type: ignore[call-overload, index]
        if missing := [point_id for point_id in ids if point_id not in by_id]:
            raise UnknownRecordError(f"No vector is stored for the id {missing[0]!r}.")
        return np.array([by_id[point_id] for point_id in ids], dtype=np.float32).reshape(len(ids), self.dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        rows = checked_vectors(vectors, self.dimension)
        return self._best([row.tolist() for row in rows], DENSE, k, exclude, filters)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        from qdrant_client import models

        weights = query_weights(text)
        queries = [models.SparseVector(indices=[*weights], values=[*weights.values()])] if weights else []
        hits = self._best(queries, SPARSE, k, exclude, filters)
        return hits[0] if hits else []

    def close(self) -> None:
        """A client that was handed in stays open: it is its owner's."""
        if self._owned:
            self._client.close()

    def _best(
        self, queries: Sequence[Any], using: str, k: int, exclude: Collection[str], filters: Filters | None
    ) -> list[Hits]:
        from qdrant_client import models

        if k < 1:
            raise ValueError(f"k is {k}; it must be 1 or more.")
        if not queries:
            return []

        condition = self._condition(alternatives(filters), exclude)
        requests = [models.QueryRequest(query=query, using=using, limit=k, filter=condition) for query in queries]
        with self._errors():
            replies = self._client.query_batch_points(self._collection, requests)

        best: list[Hits] = []
        for reply in replies:
            hits = [(_hex_id(point.id), float(point.score)) for point in reply.points]
            best.append(sorted(hits, key=lambda hit: (-hit[1], hit[0])))
        return best

    def _condition(self, one_of: Sequence[list[str]] = (), exclude: Collection[str] = ()) -> Any:
        """The condition to be in this state, with a tag of each list of `one_of`, and an id that is not in
        `exclude`."""
        from qdrant_client import models

        must: list[Any] = [models.FieldCondition(key=TAGS, match=models.MatchAny(any=tags)) for tags in one_of]
        must_not: list[Any] = [
            models.FieldCondition(key=CAME, range=models.Range(gt=self._state)),
            models.FieldCondition(key=WENT, range=models.Range(lte=self._state)),
        ]
        if exclude:
            must_not.append(models.HasIdCondition(has_id=list(exclude)))
        return models.Filter(must=must or None, must_not=must_not)

    def _came(self, ids: Sequence[str]) -> dict[str, int]:
        """The state in which each of the points came that this state has."""
        with self._errors():
            records = self._client.retrieve(self._collection, list(ids), with_payload=[CAME, WENT], with_vectors=False)
        return {_hex_id(record.id): (record.payload or {}).get(CAME, 0) for record in records if self._sees(record)}

    def _sees(self, record: Any) -> bool:
        payload = record.payload or {}
        return bool(payload.get(CAME, 0) <= self._state < payload.get(WENT, math.inf))

    def _create_or_check(self) -> None:
        from qdrant_client import models
        from qdrant_client.http.exceptions import UnexpectedResponse

        if self._client.collection_exists(self._collection):
            self._check()
            return
        try:
            self._client.create_collection(
                self._collection,
                vectors_config={DENSE: models.VectorParams(size=self.dimension, distance=models.Distance.COSINE)},
                sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            )
        except UnexpectedResponse as error:
            if error.status_code != _CONFLICT:
                raise
            self._check()  # another process made it just now
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")  # the client's local mode
            self._client.create_payload_index(self._collection, TAGS, models.PayloadSchemaType.KEYWORD)
            for key in (CAME, WENT):
                self._client.create_payload_index(self._collection, key, models.PayloadSchemaType.INTEGER)

    def _check(self) -> None:
        """Raises EncoderMismatchError for a collection of another dimension, IndexStateError for one that is not as
        this library makes them."""
        from qdrant_client import models

        params = self._client.get_collection(self._collection).config.params
        vectors: Any = params.vectors
        if not isinstance(vectors, dict) or DENSE not in vectors or SPARSE not in (params.sparse_vectors or {}):
            named = sorted(vectors) if isinstance(vectors, dict) else "one without a name"
            raise IndexStateError(
                f"The collection {self._collection!r} of the Qdrant server was not made by kraq: its vectors are "
                f"{named}, and an index has {DENSE!r} and {SPARSE!r}. Remove it, or take another server."
            )
        if vectors[DENSE].distance != models.Distance.COSINE:
            raise IndexStateError(
                f"The collection {self._collection!r} of the Qdrant server compares vectors by "
                f"{vectors[DENSE].distance.value}, and an index by {models.Distance.COSINE.value}. Remove it, or take "
                "another server."
            )
        if vectors[DENSE].size != self.dimension:
            raise EncoderMismatchError(other_dimension(self._collection, vectors[DENSE].size, self.dimension))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

        try:
            with self._one_at_a_time:
                yield
        except (json.JSONDecodeError, ValidationError, AssertionError) as error:
            raise self._unreadable(error) from error
        except ApiException as error:
            source = error.source if isinstance(error, ResponseHandlingException) else None
            if isinstance(source, ValidationError):
                raise self._unreadable(source) from error
            raise IndexStateError(
                f"The Qdrant server {self._address} with the collection {self._collection!r} failed: {error}. Check "
                "that it runs, that [store] url is its address, and that the key is right."
            ) from error

    def _unreadable(self, error: Exception) -> IndexStateError:
        """The error of a reply in another form than the server's: a proxy's, which comes with status 200."""
        return IndexStateError(
            f"What answers {self._address} for the collection {self._collection!r} is no Qdrant server: its reply "
            f"cannot be read ({type(error).__name__}). Check that [store] url is the address of the server itself, "
            "not of a proxy or a page of it."
        )


def _hex_id(point_id: Any) -> str:
    return str(point_id).replace("-", "")
