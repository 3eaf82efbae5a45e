"""Tests over real sockets how the server treats clients that go away."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import httpx
import pytest

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.guard import ServeSettings
from kraq_dspy.apps.serve.server import Server, address_of, bound
from tests.apps.serve.conftest import open_all

PATIENCE_S = 30


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
        monkeypatch.setattr(indexes["poets"].space, "make_program", lambda choice: Slow(20))
        app: Any = make_app(indexes, ServeSettings(at_once=1))
        with running(app) as address:
            client = connected(address)
            body = b'{"question": "Who?", "stream": %s}' % (b"true" if stream else b"false")
            head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while not app.app.app.state.api.slots.in_use:
                time.sleep(0.02)
            client.close()
            answer = httpx.post(f"{address}/api/ask", json={"question": "Quick?"}, timeout=10)
            assert answer.json()["answer"] == "done"
