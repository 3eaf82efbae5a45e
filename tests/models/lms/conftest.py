"""Makes a model server whose every reply the test writes, and a journal in memory."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kraq_dspy.extend import Backoff
from kraq_dspy.records import Usage

QUICK = Backoff(retries=3, first_s=0.01, longest_s=0.02, patience_s=5)


@dataclass
class Reply:
    text: str = "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    body: bytes | None = None
    finish: str = "stop"
    message: dict[str, Any] | None = None

    def payload(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.text, "type": "x", "code": str(self.status)}}).encode()
        message = {"role": "assistant", "content": self.text} if self.message is None else self.message
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return json.dumps(
            {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        ).encode()


class ScriptedServer:
    """Gives `replies` in order, the last one for ever; `requests` and their `times` are what came in."""

    def __init__(self) -> None:
        self.replies: list[Reply] = [Reply()]
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer._lock:
                    outer.times.append(time.monotonic())
                    outer.requests.append(json.loads(body))
                    outer.keys.append(self.headers.get("Authorization"))
                    reply = outer.replies.pop(0) if len(outer.replies) > 1 else outer.replies[0]
                time.sleep(reply.wait_s)
                payload = reply.payload()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with serving() as server:
        yield server


@contextmanager
def serving() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def quick() -> Backoff:
    """Three retries that wait hundredths of a second."""
    return QUICK


class MemoryJournal:
    def __init__(self) -> None:
        self.answers: dict[tuple[str, str, str], str] = {}
        self.paid: list[Usage] = []

    def recall(self, stage: str, item_id: str, request_hash: str) -> str | None:
        return self.answers.get((stage, item_id, request_hash))

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None:
        self.answers[stage, item_id, request_hash] = response_json
        self.paid.append(usage)


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()
