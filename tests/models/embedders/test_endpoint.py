"""Tests the endpoint embedder against a small server made here, and against the benchmarks' load server."""

import copy
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from stand_in import stand_in

from kraq_dspy.errors import ModelError, UnembeddableError
from kraq_dspy.extend import Backoff, load_embedder
from kraq_dspy.models.embedders.endpoint import EndpointEmbedder
from kraq_dspy.settings import EncoderSettings

Reply = tuple[int, Any, dict[str, str]]


class Server:
    """Answers each request by `answer(body)`, which a test may replace; keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self.answer: Callable[[dict[str, Any]], Reply] = lengths
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.bodies.append({**body, "path": self.path})
                    outer.keys.append(self.headers["Authorization"])
                    outer.times.append(time.monotonic())
                    outer.at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer.at_once)
                try:
                    status, content, headers = outer.answer(body)
                finally:
                    with outer.lock:
                        outer.at_once -= 1
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def lengths(body: dict[str, Any]) -> Reply:
    """The embedding of a text is (number of its characters, 1)."""
    return embeddings([[float(len(text)), 1.0] for text in body["input"]])


def embeddings(rows: Sequence[list[float] | None]) -> Reply:
    data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
    return 200, {"data": data[::-1]}, {}  # the order is in `index` alone


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def embedder(server: Server, **arguments: Any) -> EndpointEmbedder:
    return EndpointEmbedder("m", server.url, **{"backoff": Backoff(5, first_s=0.001), **arguments})


def test_vectors_come_in_the_order_of_the_texts_and_normalised(server: Server) -> None:
    endpoint = embedder(server)

    vectors = endpoint.encode_passages(["abc", ""])

    np.testing.assert_allclose(vectors, [[0.9486833, 0.31622777], [0.70710677, 0.70710677]], rtol=1e-6)
    assert vectors.dtype == np.float32
    assert endpoint.dimension == 2
    assert server.bodies[0]["path"] == "/v1/embeddings"
    assert server.bodies[0]["input"] == ["abc", " "]  # servers refuse an empty text


def test_the_dimension_is_asked_for_once(server: Server) -> None:
    endpoint = embedder(server)

    assert (endpoint.dimension, endpoint.dimension) == (2, 2)
    assert endpoint.encode_queries([]).shape == (0, 2)
    assert len(server.bodies) == 1


def test_many_texts_go_in_batches_a_few_at_a_time(server: Server) -> None:
    everyone = threading.Barrier(3)

    def meet(body: dict[str, Any]) -> Reply:
        everyone.wait(timeout=60)  # fails unless three requests are in flight together
        return lengths(body)

    server.answer = meet
    texts = ["x" * i for i in range(1, 61)]

    vectors = embedder(server, batch_size=10, concurrency=3).encode_passages(texts)

    assert np.argsort(vectors[:, 0]).tolist() == list(range(60))
    assert [len(body["input"]) for body in server.bodies] == [10] * 6
    assert server.most_at_once == 3


def test_prefixes_go_before_queries_and_passages_and_into_the_name(server: Server) -> None:
    settings = EncoderSettings("m", api_base=server.url, query_prefix="query: ", passage_prefix="passage: ")

    endpoint = load_embedder(settings)
    endpoint.encode_queries(["cat"])
    endpoint.encode_passages(["cat"])

    assert [body["input"] for body in server.bodies] == [["query: cat"], ["passage: cat"]]
    assert endpoint.name == "m at an endpoint query='query: ' passage='passage: '"


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    endpoint = load_embedder(EncoderSettings("m", api_base=server.url, api_key_env="MY_KEY"))
    monkeypatch.delenv("MY_KEY")
    without = load_embedder(EncoderSettings("m", api_base=server.url, api_key_env="MY_KEY"))

    endpoint.encode_queries(["x"])
    without.encode_queries(["x"])

    assert server.keys == ["Bearer secret", None]
    assert "secret" not in repr(endpoint) + endpoint.name


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_server_is_asked_again(server: Server, status: int) -> None:
    server.answer = lambda body: lengths(body) if len(server.bodies) > 2 else (status, {"error": "busy"}, {})

    assert embedder(server).encode_queries(["abc"]).shape == (1, 2)
    assert len(server.bodies) == 3


def test_retry_after_is_waited_for(server: Server) -> None:
    def later(body: dict[str, Any]) -> Reply:
        if len(server.bodies) > 1:
            return lengths(body)
        return 429, {}, {"Retry-After": "0.3"}

    server.answer = later

    embedder(server).encode_queries(["abc"])

    assert server.times[1] - server.times[0] >= 0.3


def test_a_retry_after_beyond_patience_is_an_error_at_once(server: Server) -> None:
    server.answer = lambda body: (429, {"error": "come back tomorrow"}, {"Retry-After": "86400"})

    with pytest.raises(ModelError, match=r"in 1 attempt.*429.*come back tomorrow"):
        embedder(server).encode_queries(["abc"])


def test_retries_are_bounded_and_the_error_says_what_to_do(server: Server) -> None:
    server.answer = lambda body: (503, {"error": "overloaded"}, {})

    with pytest.raises(ModelError, match=r"in 3 attempts; it says 503.*overloaded.*\[encoder\] api_base"):
        embedder(server, backoff=Backoff(2, first_s=0.001)).encode_queries(["abc"])

    assert len(server.bodies) == 3


@pytest.mark.parametrize(("status", "hint"), [(401, "api_key_env"), (404, "ends in /v1"), (400, "refused")])
def test_a_refusal_is_not_asked_again(server: Server, status: int, hint: str) -> None:
    endpoint = embedder(server)
    endpoint.encode_queries(["a"])
    server.bodies.clear()
    server.answer = lambda body: (status, {"error": "no"}, {})

    with pytest.raises(ModelError, match=hint):
        endpoint.encode_queries(["abc"])

    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (embeddings([[1.0, 2.0]]), "answered 2 texts with 1 embedding "),
        (embeddings([[1.0, 2.0]] * 3), "answered 2 texts with 3 embeddings"),
        (embeddings([[1.0, 2.0], [1.0]]), r"embeddings of \[1, 2\] numbers"),
        ((200, b"<html>hello</html>", {}), "no embeddings: '<html>hello</html>'"),
        ((200, {"data": [{"index": 0, "embedding": "%%%"}]}, {}), "no embeddings"),
        ((200, {"data": [{"embedding": [1.0]}]}, {}), "answered 2 texts with 1"),
        (
            (200, {"data": [{"index": 0, "embedding": [[1.0]]}, {"index": 1, "embedding": [[1.0]]}]}, {}),
            "no embeddings",
        ),
        ((200, {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}, {}), "2 texts with 2"),
        ((200, [], {}), "no embeddings"),
    ],
)
def test_an_answer_that_is_no_set_of_embeddings_is_an_error(server: Server, reply: Reply, message: str) -> None:
    server.answer = lambda body: reply

    with pytest.raises(ModelError, match=message):
        embedder(server).encode_queries(["a", "b"])


def test_a_dimension_that_changes_is_an_error(server: Server) -> None:
    endpoint = embedder(server)
    endpoint.encode_queries(["a"])
    server.answer = lambda body: embeddings([[1.0, 2.0, 3.0]])

    with pytest.raises(ModelError, match=r"embeddings of \[3\] numbers, not 2"):
        endpoint.encode_queries(["b"])


NAN = {"error": {"message": "failed to encode response: json: unsupported value: NaN"}}


@pytest.mark.parametrize(
    "fault",
    [
        lambda body: (400, {"error": "no"}, {}),
        lambda body: (500, NAN, {}),
        lambda body: embeddings([[float("nan"), 1.0] if "bad" in text else [1.0, 1.0] for text in body["input"]]),
        lambda body: embeddings([[0.0, 0.0] if "bad" in text else [1.0, 1.0] for text in body["input"]]),
        lambda body: embeddings([None if "bad" in text else [1.0, 1.0] for text in body["input"]]),
    ],
    ids=["refused", "500", "NaN", "zeros", "null"],
)
def test_a_text_that_cannot_be_embedded_costs_itself_alone(
    server: Server, fault: Callable[[dict[str, Any]], Reply]
) -> None:
    server.answer = lambda body: fault(body) if any("bad" in text for text in body["input"]) else lengths(body)

    with pytest.raises(UnembeddableError, match=r"1 of 9 texts, first 'bad one'") as caught:
        embedder(server).encode_passages([*"abcdefg", "bad one", "h"])

    assert list(caught.value.reasons) == [7]
    assert caught.value.vectors[7].tolist() == [0.0, 0.0]
    assert np.linalg.norm(caught.value.vectors, axis=1).tolist() == pytest.approx([1.0] * 7 + [0.0, 1.0])


def test_a_batch_that_is_too_large_is_halved_and_the_size_kept(server: Server) -> None:
    def few(body: dict[str, Any]) -> Reply:
        if len(body["input"]) > 10:
            return 422, {"message": f"batch size {len(body['input'])} > maximum allowed batch size 10"}, {}
        return lengths(body)

    server.answer = few
    endpoint = embedder(server, concurrency=1)
    vectors = endpoint.encode_passages(["x" * i for i in range(1, 41)])
    assert np.argsort(vectors[:, 0]).tolist() == list(range(40))
    server.bodies.clear()
    endpoint.encode_passages(["x" * i for i in range(1, 41)])
    assert [len(body["input"]) for body in server.bodies] == [10] * 4


def test_a_text_that_is_too_long_is_cut_and_named(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    def short(body: dict[str, Any]) -> Reply:
        if any(len(text) > 100 for text in body["input"]):
            return 400, {"error": {"message": "This model's maximum context length is 100 tokens"}}, {}
        return lengths(body)

    server.answer = short
    vectors = embedder(server).encode_passages(["short", "A long story. " * 20])
    assert vectors[1] == pytest.approx(np.array([87, 1]) / np.hypot(87, 1))
    assert "'A long story. " in caplog.text
    assert "87 of 280 characters count" in caplog.text


def test_items_without_an_index_are_taken_by_position(server: Server) -> None:
    data = [{"embedding": [1.0, 0.0]}, {"index": 1, "embedding": [0.0, 1.0]}]
    server.answer = lambda body: (200, {"data": data}, {})
    assert embedder(server).encode_queries(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_reply_without_an_end_is_given_up(server: Server) -> None:
    server.answer = lambda body: (200, b" " * (3 << 20), {})
    with pytest.raises(ModelError, match=r"larger than 2 MB \(reply_mb\)"):
        embedder(server, reply_mb=2).encode_queries(["a"])


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = EndpointEmbedder("m", f"http://127.0.0.1:{port}/v1", backoff=Backoff(1, first_s=0.001))

    with pytest.raises(ModelError, match=rf"127.0.0.1:{port}/v1/embeddings did not embed.*cannot be reached"):
        _ = endpoint.dimension


def test_one_text_instead_of_a_list_is_refused(server: Server) -> None:
    with pytest.raises(TypeError, match="a list of texts"):
        embedder(server).encode_queries("text")


def test_a_copied_program_shares_its_embedder(server: Server) -> None:
    endpoint = embedder(server)

    assert copy.deepcopy([endpoint])[0] is endpoint


def test_a_faulty_server_embeds_a_corpus_in_the_end() -> None:
    with stand_in(rate_429=0.2, retry_after=0.01, embed_latency_ms=20) as server:
        endpoint = load_embedder(EncoderSettings("fake-embed", api_base=server.url, batch_size=20))
        texts = [f"passage {i} about topic {i % 7}" for i in range(1000)]

        vectors = endpoint.encode_passages(texts)

        again = endpoint.encode_passages(texts[777:778])[0]
        stats = server.stats()
    assert vectors.shape == (1000, endpoint.dimension) == (1000, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(again, vectors[777])
    assert stats["faults"]["embed_429"] > 0
    assert 1 < stats["embeddings"]["max_concurrency"] <= 4
