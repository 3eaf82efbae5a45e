"""Serves the packaged MiniLM at an OpenAI-compatible /v1/embeddings, so that every system searches the same vectors.

    python benchmarks/peers/encoder_server.py

Prints its address and serves until its standard input is closed.
"""

import base64
import json
import sys
import threading
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import EncoderSettings


class Encoder:
    """Encodes one request at a time, and each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._vectors: dict[str, np.ndarray] = {}

    def __call__(self, texts: list[str]) -> list[np.ndarray]:
        with self._lock:
            new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
            if new:
                self._vectors.update(zip(new, self._embedder.encode_passages(new), strict=True))
            return [self._vectors[text] for text in texts]


@lru_cache(maxsize=1)
def encoder() -> Encoder:
    return Encoder(load_embedder(EncoderSettings()))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = json.dumps(as_reply(body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing of what went well."""


def as_reply(body: dict[str, Any]) -> dict[str, Any]:
    """The vectors of `body["input"]`, one text or several, in OpenAI's form."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    as_base64 = body.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": n, "embedding": _written(vector, as_base64)}
        for n, vector in enumerate(encoder()(texts))
    ]
    tokens = sum(map(len, texts)) // 4
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": rows, "usage": usage}


def _written(vector: np.ndarray, as_base64: bool) -> str | list[float]:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if as_base64 else vector.tolist()


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
