"""A reply that never ends or is huge is given up, in memory, and what a server says of a refusal is told."""

import asyncio
import contextlib
import gzip
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from dspy.utils.exceptions import LMCollectionLimitError, LMError

from kraq_dspy import make_lm
from kraq_dspy.models.lms.limited_transport import with_reason
from kraq_dspy.settings import RoleSettings

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = gzip.compress(b" " * (100 << 20), 1)
PATIENCE_S = 60  # on a busy machine; what is not given up never ends
Write = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(write: Write) -> Iterator[str]:
    """A server that reads a request and answers as `write` does."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 20)
            write(connection)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):  # what is unread when a connection is closed would break it off
                pass

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b" " * 65536)


def bomb(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)


def ask(url: str, asynchronous: bool) -> Any:
    lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=url, reply_mb=4, timeout_s=5, retries=0))
    return asyncio.run(lm.acall("?")) if asynchronous else lm("?")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("write", "words"),
    [
        (endless, r"larger than 4 MB \(reply_mb\)"),
        (bomb, r"larger than 4 MB \(reply_mb\)"),
    ],
)
def test_it_is_given_up(write: Write, words: str, asynchronous: bool) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server(write) as url:
        started = time.monotonic()
        with pytest.raises(LMCollectionLimitError, match=words):
            ask(url, asynchronous)
        assert time.monotonic() - started < PATIENCE_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_a_server_that_is_silent_is_not_taken_for_one_that_writes_too_much() -> None:
    with server(lambda connection: time.sleep(3)) as url, pytest.raises(LMError) as caught:
        ask(url, asynchronous=False)
    assert isinstance(caught.value, LMError)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_tls_handshake_that_hangs_keeps_to_the_time_limit(asynchronous: bool) -> None:
    with server(lambda connection: time.sleep(2 * PATIENCE_S)) as url:
        secure = url.replace("http://", "https://")
        lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=secure, timeout_s=0.5, retries=0))
        started = time.monotonic()
        with pytest.raises(LMError):
            asyncio.run(lm.acall("?")) if asynchronous else lm("?")
        assert time.monotonic() - started < PATIENCE_S


REASON = "LoRA rank 64 is greater than max_lora_rank 16."


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"object": "error", "message": REASON, "type": "BadRequestError", "code": 400}, REASON),
        ({"message": REASON}, REASON),
        (REASON, REASON),
        ({"detail": REASON}, json.dumps({"detail": REASON})),
        ({"errors": [{"message": REASON}]}, json.dumps({"errors": [{"message": REASON}]})),
        ({"error": REASON}, json.dumps({"error": REASON})),
    ],
)
def test_the_words_of_a_server_are_kept_in_whatever_form_they_come(body: object, reason: str) -> None:
    told = json.loads(with_reason(body.encode() if isinstance(body, str) else json.dumps(body).encode()))
    assert told["error"]["message"] == reason


@pytest.mark.parametrize("body", [b"", b"<html><h1>502</h1></html>", b'{"error": {"message": "own form"}}'])
def test_what_has_no_reason_or_openais_form_stays_as_it_is(body: bytes) -> None:
    assert with_reason(body) == body


@pytest.mark.parametrize("status", [400, 403, 404, 422, 424, 500])
def test_a_role_tells_the_servers_reason(status: int) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"object": "error", "message": REASON}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        role = RoleSettings(model="hosted_vllm/m", api_base=f"http://127.0.0.1:{server.server_port}/v1", retries=0)
        with pytest.raises(Exception, match="LoRA rank 64 is greater than max_lora_rank 16"):
            make_lm(role)("Who?")
    finally:
        server.shutdown()


@pytest.mark.parametrize(
    "words", ["System role not supported", "Conversation roles must alternate user/assistant/user/assistant/..."]
)
@pytest.mark.parametrize("retries", [0, 2])
def test_a_served_model_that_takes_no_system_role_is_asked_without_one(words: str, retries: int) -> None:
    seen: list[list[dict[str, str]]] = []

    class Gemma(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            seen.append(messages)
            refused = messages[0]["role"] == "system"
            choice = {"index": 0, "message": {"role": "assistant", "content": "Ada"}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            body = json.dumps({"object": "error", "message": words} if refused else {**answer, "usage": usage})
            self.send_response(400 if refused else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gemma)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who?"}]
    try:
        role = RoleSettings(
            model="hosted_vllm/m", api_base=f"http://127.0.0.1:{server.server_port}/v1", retries=retries
        )
        lm = make_lm(role)
        for _ in range(2):
            assert "Ada" in str(lm(messages=chat))
    finally:
        server.shutdown()
    assert [messages[0]["role"] for messages in seen] == ["system", "user", "user"]  # it is asked once
    assert [each["content"] for each in seen[1]] == ["Be short.\n\nWho?"]
