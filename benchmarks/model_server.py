"""Serves one GGUF file and the packaged MiniLM as an OpenAI-compatible server, and counts what it is asked.

    python benchmarks/model_server.py models/qwen2.5-coder-0.5b.gguf [--threads 1] [--slots 2] [--most 512]

llama.cpp writes (the package xllamacpp), so a `response_format` with a schema is kept to. Prints its address and serves
until its standard input is closed. `/stats` says what was asked since the start, or since a POST to `/reset`.
"""

import argparse
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from peers.encoder_server import as_reply

DAY_S = 86_400
MOST_TOKENS = 512


class Asked:
    """Sums over chat requests; safe for threads. `seconds` are those of each request, its wait for a slot included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: Counter[str] = Counter()

    def add(self, **sums: float) -> None:
        with self._lock:
            self._sums.update(sums)  # type: ignore[arg-type]

    def reset(self) -> None:
        with self._lock:
            self._sums.clear()

    def stats(self) -> dict[str, float]:
        names = ("calls", "refused", "cut", "with_schema", "prompt_tokens", "written_tokens", "seconds", "embedded")
        with self._lock:
            return {name: self._sums[name] for name in names}


def bounded(body: dict[str, Any], most: int) -> dict[str, Any]:
    """The request with a bound on the tokens of its reply, where it has none or a larger one.

    A small model that repeats itself would write until its context is full."""
    names = ("max_tokens", "max_completion_tokens")
    limits = [body[name] for name in names if body.get(name)]
    others = {name: value for name, value in body.items() if name not in names}
    return {**others, "max_tokens": min([*limits, most])}


def counts_of(body: dict[str, Any], reply: dict[str, Any]) -> dict[str, float]:
    """What one request adds to the sums."""
    usage = reply.get("usage") or {}
    return {
        "calls": 1,
        "cut": sum(choice.get("finish_reason") == "length" for choice in reply.get("choices", [])),
        "with_schema": int(bool({"schema", "json_schema"} & set(body.get("response_format") or {}))),
        "prompt_tokens": usage.get("prompt_tokens", 0),
        "written_tokens": usage.get("completion_tokens", 0),
    }


class StreamedReply:
    """What the events of a stream say about their reply, also of one whose reader leaves before the end: llama.cpp
    tells at each part how much it has read and written (`timings_per_token`)."""

    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._finish_reason: str | None = None

    def push(self, line: bytes) -> None:
        """A line of the stream."""
        if not line.startswith(b"data: {"):
            return
        event = json.loads(line.removeprefix(b"data: "))
        timings = event.get("timings") or {}
        if "predicted_n" in timings:
            read = timings.get("prompt_n", 0) + timings.get("cache_n", 0)
            self._usage = {"prompt_tokens": read, "completion_tokens": timings["predicted_n"]}
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices") or ():
            self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def as_reply(self) -> dict[str, Any]:
        return {"usage": self._usage, "choices": [{"finish_reason": self._finish_reason}]}


def handler_of(model: str, asked: Asked, most: int = MOST_TOKENS) -> type[BaseHTTPRequestHandler]:
    """`model` is the address of llama.cpp's server, `most` the tokens of a reply."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, asked.stats() if self.path == "/stats" else {"data": [{"id": "local"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if self.path == "/reset":
                asked.reset()
                self._send(200, {})
            elif self.path.endswith("/embeddings"):
                reply = as_reply(body)
                asked.add(embedded=len(reply["data"]))
                self._send(200, reply)
            else:
                self._chat(body)

        def _chat(self, body: dict[str, Any]) -> None:
            start = time.monotonic()
            is_streamed = bool(body.get("stream"))
            counts = {"timings_per_token": True, "stream_options": {"include_usage": True}} if is_streamed else {}
            request = urllib.request.Request(
                f"{model}/v1/chat/completions",
                json.dumps(bounded({**body, **counts, "stream": is_streamed}, most)).encode(),
                {"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=DAY_S) as answer:
                    if is_streamed:
                        reply = self._forward(answer)
                    else:
                        reply = json.loads(answer.read())
                        self._send(answer.status, reply)
                asked.add(**counts_of(body, reply))
            except urllib.error.HTTPError as error:
                asked.add(calls=1, refused=1)
                self._send(error.code, json.loads(error.read() or b"{}"))
            asked.add(seconds=time.monotonic() - start)

        def _forward(self, answer: Iterable[bytes]) -> dict[str, Any]:
            """A stream as it comes, until it ends or nobody listens; what is counted of it."""
            counted = StreamedReply()
            self.close_connection = True  # its end is that of the stream
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has read enough: llama.cpp is left, too
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for line in answer:
                    counted.push(line)
                    self.wfile.write(line)
                    self.wfile.flush()
            return counted.as_reply()

        def _send(self, status: int, reply: Any) -> None:
            written = json.dumps(reply).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(written)))
                self.end_headers()
                self.wfile.write(written)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing of what went well."""

    return Handler


def serve_model(file: Path, *, threads: int, slots: int, context: int) -> Any:
    """llama.cpp's server, which runs in threads of this process as long as the object is kept."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(file)
    parameters.model_alias = ["local"]
    parameters.verbosity = -1
    parameters.port = 0  # any that is free
    parameters.n_parallel = slots
    parameters.n_ctx = context * slots
    parameters.use_jinja = True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slots", type=int, default=2, help="requests that are worked on together")
    parser.add_argument("--context", type=int, default=8192, help="tokens of a slot")
    parser.add_argument("--most", type=int, default=MOST_TOKENS, help="tokens of a reply")
    options = parser.parse_args()
    model = serve_model(options.model, threads=options.threads, slots=options.slots, context=options.context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(model.listening_address, Asked(), options.most))
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
