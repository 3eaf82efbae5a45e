"""A reply that drips, never ends or is huge is given up, in time and in memory."""

import asyncio
import contextlib
import gzip
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dspy.utils.exceptions import LMCollectionLimitError, LMError

from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.settings import RoleSettings

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = gzip.compress(b" " * (100 << 20), 1)
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


def dripping_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"1\r\n \r\n")
        time.sleep(0.05)


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b" " * 65536)


def bomb(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)


def packed_twice(connection: socket.socket) -> None:
    packed = gzip.compress(gzip.compress(b" " * (1 << 20)))
    connection.sendall(HEAD + b"Content-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)


def ask(url: str, asynchronous: bool) -> Any:
    lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=url, reply_s=1.0, reply_mb=4, timeout_s=5, retries=0))
    return asyncio.run(lm.acall("?")) if asynchronous else lm("?")


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("write", "words"),
    [
        (dripping_head, r"after 1 s \(reply_s\)"),
        (dripping_body, r"after 1 s \(reply_s\)"),
        (endless, r"larger than 4 MB \(reply_mb\)"),
        (bomb, r"larger than 4 MB \(reply_mb\)"),
        (packed_twice, "packed more than once"),
    ],
)
def test_it_is_given_up(write: Write, words: str, asynchronous: bool) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server(write) as url:
        started = time.monotonic()
        with pytest.raises(LMCollectionLimitError, match=words):
            ask(url, asynchronous)
        assert time.monotonic() - started < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_a_server_that_is_silent_is_not_taken_for_one_that_writes_too_much() -> None:
    with server(lambda connection: time.sleep(3)) as url, pytest.raises(LMError) as caught:
        ask(url, asynchronous=False)
    assert isinstance(caught.value, LMError)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_tls_handshake_that_hangs_keeps_to_the_time_limit(asynchronous: bool) -> None:
    with server(lambda connection: time.sleep(8)) as url:
        secure = url.replace("http://", "https://")
        lm = make_lm(RoleSettings(model="hosted_vllm/m", api_base=secure, timeout_s=0.5, retries=0))
        started = time.monotonic()
        with pytest.raises(LMError):
            asyncio.run(lm.acall("?")) if asynchronous else lm("?")
        assert time.monotonic() - started < 5
