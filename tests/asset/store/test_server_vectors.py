"""A Qdrant server keeps the points of each state apart, and of each collection."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kraq_dspy.asset.store.vectors import QdrantVectorStore
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError
from kraq_dspy.records import content_id
from tests.asset.store.test_vectors import unit

CAT, DOG, BIRD, FISH = (content_id(name) for name in ("cat", "dog", "bird", "fish"))


def test_a_server_that_is_not_there_is_named_with_what_to_check() -> None:
    with pytest.raises(IndexStateError, match=r"Qdrant server.*url is its address"):
        QdrantVectorStore("http://127.0.0.1:9", "animals", 3)


def test_a_collection_of_another_dimension_is_refused() -> None:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    QdrantVectorStore(client, "animals", 3)

    with pytest.raises(EncoderMismatchError, match="animals holds 3-dimensional"):
        QdrantVectorStore(client, "animals", 4)


def test_each_state_of_a_collection_has_its_own_points_until_they_are_forgotten() -> None:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")

    def of(state: int) -> QdrantVectorStore:
        return QdrantVectorStore(client, "animals", 3, state=state)

    of(1).upsert([CAT, DOG], unit([1, 0, 0], [1, 0, 0]), ["the cat purrs", "the dog barks"])
    of(2).delete([CAT])
    of(2).upsert([BIRD, DOG], unit([1, 0, 0], [1, 0, 0]), ["the bird sings", "the dog barks"])
    of(2).upsert([FISH], unit([1, 0, 0]))
    of(2).delete([FISH])

    for state, expected in ((1, {CAT, DOG}), (2, {DOG, BIRD}), (3, {DOG, BIRD})):
        store = of(state)
        assert store.ids() == expected
        assert store.count() == 2
        assert {one for one, _ in store.search(unit([1, 0, 0]), 9)[0]} == expected
        assert {one for one, _ in store.search_text("cat dog bird", 9)} == expected
        assert store.vectors(sorted(expected)).shape == (2, 3)
        with pytest.raises(UnknownRecordError):
            store.vectors([FISH])
    of(2).forget()  # state 1 may still be read
    assert of(1).ids() == {CAT, DOG}
    of(3).forget()
    assert of(1).ids() == {DOG}
    of(3).upsert([CAT], unit([1, 0, 0]))
    assert (of(2).ids(), of(3).ids()) == ({DOG, BIRD}, {CAT, DOG, BIRD})


def test_collections_of_one_server_do_not_mix() -> None:
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    cats, dogs = (QdrantVectorStore(client, name, 3) for name in ("cats", "dogs"))
    cats.upsert([CAT], unit([1, 0, 0]))

    assert (cats.ids(), dogs.ids()) == ({CAT}, set())
    cats.close()  # the client is ours: it stays open
    assert dogs.count() == 0


class Pretending(BaseHTTPRequestHandler):
    """What stands at the address of a Qdrant server, and is none, or one that others use at the same moment."""

    protocol_version = "HTTP/1.1"
    kind = ""

    def log_message(self, *args: object) -> None:
        pass

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        vectors: dict[str, object] = {"dense": {"size": 3, "distance": "Cosine"}}
        if self.kind == "page":
            return self.reply(200, b"<html>nginx</html>", "text/html")
        if self.kind == "other JSON":
            return self.reply(200, {"hello": "world"})
        if self.kind == "other distance":
            vectors = {"dense": {"size": 3, "distance": "Euclid"}}
        if self.kind == "unnamed":
            vectors = {"size": 3, "distance": "Cosine"}
        if self.path.endswith("/exists"):
            return self.reply(200, ok({"exists": self.kind != "race"}))
        if self.kind == "race" and self.command == "PUT":
            return self.reply(409, {"status": {"error": "Wrong input: Collection `c` already exists!"}, "time": 0})
        if self.kind == "points in another form" and "/points" in self.path:
            return self.reply(200, ok({"operation_id": 1, "status": "completed"}))
        sparse: dict[str, object] = {} if self.kind == "without words" else {"bm25": {}}
        params = {"vectors": vectors, "sparse_vectors": sparse, "shard_number": 1, "replication_factor": 1}
        config = {
            "params": {**params, "write_consistency_factor": 1, "on_disk_payload": True},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000,
                                 "default_segment_number": 0, "flush_interval_sec": 5},
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
        }  # fmt: skip
        info = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "points_count": 0, "config": config}
        return self.reply(200, ok({**info, "payload_schema": {}}))

    do_GET = do_PUT = do_POST = answer  # noqa: N815 (as the base class calls them)

    def reply(self, status: int, body: object, kind: str = "application/json") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def ok(result: object) -> dict[str, object]:
    return {"result": result, "status": "ok", "time": 0}


@contextmanager
def pretending(kind: str) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Kind", (Pretending,), {"kind": kind}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("page", "is no Qdrant server"),
        ("other JSON", "is no Qdrant server"),
        ("unnamed", "was not made by kraq: its vectors are one without a name"),
        ("without words", "was not made by kraq"),
        ("other distance", "compares vectors by Euclid"),
    ],
)
def test_what_is_no_store_of_an_index_is_refused_in_words(kind: str, words: str) -> None:
    with pretending(kind) as url, pytest.raises(IndexStateError, match=words):
        QdrantVectorStore(url, "c", 3)


def test_a_collection_that_another_process_makes_at_the_same_moment_is_used() -> None:
    with pretending("race") as url:
        assert QdrantVectorStore(url, "c", 3).dimension == 3
    with pretending("race") as url, pytest.raises(EncoderMismatchError):
        QdrantVectorStore(url, "c", 4)


def test_a_reply_in_another_form_is_told_in_one_sentence_with_the_address() -> None:
    with pretending("points in another form") as url:
        store = QdrantVectorStore(url, "c", 3)
        calls: list[Callable[[], object]] = [
            store.count,
            store.ids,
            lambda: store.vectors([CAT]),
            lambda: store.upsert([CAT], unit([1, 0, 0])),
            lambda: store.search(unit([1, 0, 0]), 3),
        ]
        for call in calls:
            with pytest.raises(IndexStateError, match=f"answers at {url} for .* is no Qdrant server") as raised:
                call()
            assert "\n" not in str(raised.value)
            assert "input_value" not in str(raised.value)
