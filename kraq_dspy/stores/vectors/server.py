"""Keeps vectors in a collection of a Qdrant server."""

import threading
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from kraq_dspy.errors import EncoderMismatchError, IndexStateError, needs
from kraq_dspy.stores.vectors.points import BATCH, DENSE, SPARSE, TAGS, PointStore, Weights, other_dimension

if TYPE_CHECKING:
    from qdrant_client import QdrantClient


class QdrantVectorStore(PointStore):
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
        with needs("qdrant-client", "all", "A Qdrant server as vector store"):
            from qdrant_client import QdrantClient
        super().__init__(dimension, language)
        self._owned = isinstance(server, str)
        self._client = (
            QdrantClient(url=server, api_key=api_key, check_compatibility=False) if isinstance(server, str) else server
        )
        self._collection = collection
        self._one_at_a_time: AbstractContextManager[Any] = (
            threading.RLock() if _is_local(self._client) else nullcontext()
        )
        with self._errors():
            self._create_or_check()

    def count(self) -> int:
        with self._errors():
            return self._client.count(self._collection, exact=True).count

    def close(self) -> None:
        """A client that was handed in stays open: it is its owner's."""
        if self._owned:
            self._client.close()

    def _create_or_check(self) -> None:
        from qdrant_client import models

        if self._client.collection_exists(self._collection):
            vectors: Any = self._client.get_collection(self._collection).config.params.vectors
            stored = vectors[DENSE].size if isinstance(vectors, dict) and DENSE in vectors else 0
            if stored != self.dimension:
                raise EncoderMismatchError(other_dimension(self._collection, stored, self.dimension))
            return
        self._client.create_collection(
            self._collection,
            vectors_config={DENSE: models.VectorParams(size=self.dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")  # the client's local mode
            self._client.create_payload_index(self._collection, TAGS, models.PayloadSchemaType.KEYWORD)

    def _sparse(self, weights: Weights) -> Any:
        from qdrant_client import models

        return models.SparseVector(indices=weights[0], values=weights[1])

    def _point(self, point_id: str, vector: dict[str, Any], payload: dict[str, list[str]]) -> Any:
        from qdrant_client import models

        return models.PointStruct(id=point_id, vector=vector, payload=payload)

    def _write(self, points: list[Any]) -> None:
        with self._errors():
            self._client.upsert(self._collection, points, wait=True)

    def _remove(self, ids: list[str]) -> None:
        from qdrant_client import models

        with self._errors():
            self._client.delete(self._collection, models.PointIdsList(points=list(ids)), wait=True)

    def _page(self, offset: Any) -> tuple[Iterable[Any], Any]:
        with self._errors():
            return self._client.scroll(
                self._collection, limit=10 * BATCH, offset=offset, with_payload=False, with_vectors=False
            )

    def _records(self, ids: list[str]) -> Iterable[Any]:
        with self._errors():
            return self._client.retrieve(self._collection, ids, with_payload=False, with_vectors=[DENSE])

    def _condition(self, one_of: list[list[str]], exclude: Collection[str]) -> Any:
        from qdrant_client import models

        must: list[Any] = [models.FieldCondition(key=TAGS, match=models.MatchAny(any=tags)) for tags in one_of]
        must_not: list[Any] = [models.HasIdCondition(has_id=list(exclude))] if exclude else []
        return models.Filter(must=must or None, must_not=must_not or None) if must or must_not else None

    def _query(self, queries: list[Any], using: str, limit: int, condition: Any) -> Iterable[Iterable[Any]]:
        from qdrant_client import models

        requests = [models.QueryRequest(query=query, using=using, limit=limit, filter=condition) for query in queries]
        with self._errors():
            return [reply.points for reply in self._client.query_batch_points(self._collection, requests)]

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
