"""Tests over real sockets how the server treats clients that go away."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dspy
import httpx
import pytest

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.server import Server, address_of, bound
from tests.apps.serve.conftest import open_all

PATIENCE_S = 100


@contextmanager
def running(app: Any) -> Iterator[str]:
    """The application on a port of its own in a thread, by its address."""
    started = threading.Event()
    server = Server(app, started.set)
    with bound("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run_on, args=[listening])
        thread.start()
        assert started.wait(PATIENCE_S)
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


class Slow(dspy.Module):
    """Takes its time, but for "Quick?"."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def aforward(self, question: str) -> dspy.Prediction:
        await asyncio.sleep(0 if question == "Quick?" else self.seconds)
        return dspy.Prediction(answer="done", hits=[], auxiliary_questions=[])


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_left_frees_the_only_place(stream: bool, poets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_all(poets) as indexes:
        monkeypatch.setattr(indexes["poets"].space, "make_program", lambda choice: Slow(10 * PATIENCE_S))
        app: Any = make_app(indexes, ServeSettings(workers=1))
        with running(app) as address:
            client = connected(address)
            body = b'{"question": "Who?", "stream": %s}' % (b"true" if stream else b"false")
            head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while not app.app.app.state.api.slots.in_use:
                time.sleep(0.02)
            client.close()
            answer = httpx.post(f"{address}/api/ask", json={"question": "Quick?"}, timeout=PATIENCE_S)
            assert answer.json()["answer"] == "done"


def test_no_answer_is_held_after_it_was_given(poets: Path) -> None:
    calls_before = len(dspy.settings.trace)
    with open_all(poets) as indexes, running(make_app(indexes, ServeSettings())) as address:
        body = {"question": "Who wrote Don Juan?"}
        answers = [httpx.post(f"{address}/api/ask", json=body, timeout=PATIENCE_S).json()["answer"] for _ in range(2)]
        assert "Byron" in answers[0]
    assert len(dspy.settings.trace) == calls_before


def closed_after(client: socket.socket) -> bool:
    """Whether the server closes the connection by itself within the patience of this test."""
    client.settimeout(PATIENCE_S)
    try:
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_half_a_request_does_not_hold_its_place(poets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.apps.serve.server.HEADERS_S", 0.5)
    monkeypatch.setattr("kraq_dspy.apps.serve.guard.BODY_S", 0.5)
    with open_all(poets) as indexes, running(make_app(indexes, ServeSettings())) as address:
        begun = time.monotonic()
        nothing, half, body, again = (connected(address) for _ in range(4))
        half.sendall(b"GET /health HTTP/1.1\r\nHost: local")
        body.sendall(
            b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 40\r\n\r\n{"
        )
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(4096).startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /health HTT")  # of the second request on a connection that stays open
        assert body.recv(4096).startswith(b"HTTP/1.1 408")
        for client in (nothing, half, again):
            assert closed_after(client)
            client.close()
        assert time.monotonic() - begun < 25  # as against 30 s and more
        assert httpx.get(f"{address}/health").status_code == 200


def test_bytes_that_drip_do_not_prolong_the_wait(poets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.apps.serve.server.HEADERS_S", 0.5)
    with open_all(poets) as indexes, running(make_app(indexes, ServeSettings())) as address:
        client = connected(address)
        begun = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - begun < PATIENCE_S:
                client.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - begun < PATIENCE_S


def test_an_answer_that_takes_longer_than_a_head_may_is_given(poets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraq_dspy.apps.serve.server.HEADERS_S", 0.2)
    with open_all(poets) as indexes:
        monkeypatch.setattr(indexes["poets"].space, "make_program", lambda choice: Slow(1))
        with running(make_app(indexes, ServeSettings())) as address, httpx.Client(base_url=address) as client:
            for _ in range(2):
                assert client.post("/api/ask", json={"question": "Who?"}, timeout=PATIENCE_S).json()["answer"] == "done"
