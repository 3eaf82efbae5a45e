"""Tests over real sockets how the server treats clients that send half a request, go away, or wait for nothing."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dspy
import httpx
import pytest

from kraq_dspy.apps.serve import asking, server
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.guard import ServeSettings
from kraq_dspy.apps.serve.server import address_of, bound, run
from tests.apps.serve.conftest import open_all

PATIENCE_S = 30


@contextmanager
def running(app: Any) -> Iterator[str]:
    """The application on a port of its own in a thread, by its address."""
    started = threading.Event()
    stops: list[Callable[[], None]] = []
    with bound("127.0.0.1", 0) as listening:
        thread = threading.Thread(
            target=run, args=(app, listening), kwargs={"started": started.set, "stoppable": stops.append}
        )
        thread.start()
        assert started.wait(PATIENCE_S)
        try:
            yield address_of(listening)
        finally:
            stops[0]()
            thread.join(PATIENCE_S)


@pytest.fixture
def address(poets: Path) -> Iterator[str]:
    with open_all(poets) as indexes, running(make_app(indexes, ServeSettings(at_once=1))) as address:
        yield address


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


@pytest.mark.parametrize("sent", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_whose_headers_never_end_is_closed(
    sent: bytes, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.2)
    with connected(address) as client:
        client.sendall(sent)
        with suppress(ConnectionResetError):
            assert client.recv(10) == b""


def test_headers_that_drip_are_given_up_after_a_first_request_too(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.3)
    with connected(address) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in client.recv(1000)
        client.sendall(b"GET /health HTTP/1.1\r\nX: ")
        dripped = 0
        with suppress(OSError):
            while dripped < 20 * PATIENCE_S:
                client.sendall(b"x")
                dripped += 1
                time.sleep(0.05)
        assert dripped < 20 * PATIENCE_S


def test_a_slow_answer_is_no_slow_request(poets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.1)
    with serving(poets, Slow(0.5)) as address:
        answer = httpx.post(f"{address}/api/ask", json={"question": "Who?"}, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["answer"]) == (200, "done")


class Slow(dspy.Module):
    """Takes its time; `stubborn` takes no notice of being cancelled."""

    def __init__(self, seconds: float, *, stubborn: bool = False) -> None:
        super().__init__()
        self.seconds = seconds
        self.stubborn = stubborn

    async def aforward(self, question: str) -> dspy.Prediction:
        until = time.monotonic() + (0 if question == "Quick?" else self.seconds)
        while (left := until - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
        return dspy.Prediction(answer="done", hits=[], auxiliary_questions=[])


@contextmanager
def serving(poets: Path, program: dspy.Module) -> Iterator[str]:
    """With one place for questions, which this program answers."""
    with open_all(poets) as indexes:
        indexes[None].space.make_program = lambda choice: program  # type: ignore[method-assign]
        with running(make_app(indexes, ServeSettings(at_once=1))) as address:
            yield address


@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_left_frees_its_place_whatever_its_question_does(
    stubborn: bool, stream: bool, poets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "CANCEL_S", 0.2)
    with serving(poets, Slow(4, stubborn=stubborn)) as address:
        client = connected(address)
        body = b'{"question": "Who?", "stream": %s}' % (b"true" if stream else b"false")
        head = (
            b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        client.sendall(head % len(body) + body)
        while "kraq_questions_in_progress 1.0" not in httpx.get(f"{address}/metrics").text:
            time.sleep(0.02)
        client.close()
        began = time.monotonic()
        answer = httpx.post(f"{address}/api/ask", json={"question": "Quick?"}, timeout=PATIENCE_S)
        assert answer.json()["answer"] == "done"
        assert time.monotonic() - began < 3
