"""A server of workers without an index: each answers its process id to whoever connects.

    python pid_server.py N [refuse | break]

Prints "PORT ready" when all are ready. With "refuse" workers cannot start, and say why; with "break" they are killed.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from kraq_dspy.errors import ConfigError
from kraq_dspy.serve.workers import run_workers


def answer_pid(number: int, listening: socket.socket, ready: Callable[[list[str]], None]) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    listening.listen()
    listening.settimeout(0.05)
    ready(["ready"])
    while not ended.is_set():
        try:
            client, _ = listening.accept()
        except TimeoutError:
            continue
        with client:
            client.sendall(str(os.getpid()).encode())


def refuse(number: int, listening: socket.socket, ready: Callable[[list[str]], None]) -> None:
    raise ConfigError("This cannot be served. Serve something else.")


def be_killed(number: int, listening: socket.socket, ready: Callable[[list[str]], None]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    count, way = int(sys.argv[1]), (sys.argv[2:] or [""])[0]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        run_workers(
            {"": answer_pid, "refuse": refuse, "break": be_killed}[way],
            count,
            listening,
            started=lambda lines: print(port, *lines, flush=True),
            ended=lambda pid: print("ended", pid, flush=True),
        )


if __name__ == "__main__":
    main()
