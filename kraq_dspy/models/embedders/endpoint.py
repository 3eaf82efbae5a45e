"""Asks encoders behind an OpenAI-compatible `/v1/embeddings`: OpenAI, vLLM, TEI, Ollama and others."""

import base64
import binascii
import itertools
import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import numpy as np

from kraq_dspy._internal.backoff import Backoff
from kraq_dspy._internal.concurrency import run_all
from kraq_dspy.errors import ModelError
from kraq_dspy.models.embedders.text_encoder import TextEncoder, unit_rows
from kraq_dspy.ports import Vectors

logger = logging.getLogger(__name__)

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class EndpointEmbedder(TextEncoder):
    """Asks `{api_base}/embeddings` in batches of `batch_size`, up to `concurrency` at a time. Safe for threads.

    A busy or unreachable server is asked again as `backoff` says. `prefixes` go before queries and before passages.
    The dimension is learned from the first answer. Vectors are normalised here.

    Raises ModelError when the server cannot be reached, refuses, or answers with what is no set of embeddings.
    """

    def __init__(
        self,
        model: str,
        api_base: str,
        *,
        api_key: str | None = None,
        prefixes: tuple[str, str] = ("", ""),
        batch_size: int = 64,
        concurrency: int = 4,
        backoff: Backoff | None = None,
        timeout_s: float = 120.0,
    ) -> None:
        self.query_prefix, self.passage_prefix = prefixes
        self.name = self._named(f"{model} at an endpoint")
        self._model = model
        self._url = f"{api_base.rstrip('/')}/embeddings"
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._backoff = backoff or Backoff(retries=5)
        self._encoding = "base64"  # a quarter of the bytes; servers that do not know it get "float"
        self._learning = threading.Lock()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(headers=headers, timeout=timeout_s)

    def close(self) -> None:
        self._client.close()

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r}, {self._url!r})"

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        full = [_sendable(prefix + text) for text in texts]
        batches = [full[start : start + self._batch_size] for start in range(0, len(full), self._batch_size)]
        return np.concatenate(run_all(self._ask, batches, limit=self._concurrency))

    def _ask(self, texts: list[str]) -> Vectors:
        for attempt in itertools.count():
            try:
                reply = self._client.post(
                    self._url, json={"model": self._model, "input": texts, "encoding_format": self._encoding}
                )
            except httpx.TransportError as error:
                problem, asked_s = f"it cannot be reached: {error or type(error).__name__}", None
            else:
                if reply.is_success:
                    return self._read(reply, len(texts))
                if reply.status_code in (400, 422) and self._encoding == "base64" and "encoding_format" in reply.text:
                    self._encoding = "float"
                    return self._ask(texts)
                problem, asked_s = _complaint(reply), _retry_after_s(reply)
                if reply.status_code not in _BUSY:
                    raise ModelError(f"{self._url} refused to embed with {self._model!r}: {problem}")
            pause_s = self._backoff.wait(attempt, asked_s)
            if pause_s is None:
                break
            logger.debug("Embedding again in %.1f s: %s", pause_s, problem)
            time.sleep(pause_s)
        raise ModelError(
            f"{self._url} did not embed with {self._model!r} in {attempt + 1} attempts; {problem}. Check that the "
            "server runs at that address ([encoder] api_base), and go on: what was made before is kept."
        )

    def _read(self, reply: httpx.Response, n_texts: int) -> Vectors:
        try:
            data = sorted(reply.json()["data"], key=lambda item: item["index"])
            rows = [_row(item["embedding"]) for item in data]
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise ModelError(f"{self._url} answered with what are no embeddings: {reply.text[:200]!r}") from error
        if len(rows) != n_texts or [item["index"] for item in data] != list(range(n_texts)):
            raise ModelError(f"{self._url} answered {n_texts} texts with {len(rows)} embeddings of {self._model!r}.")
        widths = {len(row) for row in rows}
        with self._learning:
            if self._dimension is None and len(widths) == 1:
                (self._dimension,) = widths
        if widths != {self._dimension}:
            raise ModelError(
                f"{self._url} answered with embeddings of {sorted(widths)} numbers, not {self._dimension}."
            )
        return unit_rows(np.array(rows, np.float32), f"{self._url} answered with an embedding of {self._model!r}")


def _row(embedding: Any) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
    row = np.array(embedding, dtype=np.float32)
    if row.ndim != 1:
        raise ValueError(f"An embedding of shape {row.shape}.")
    return row


def _sendable(text: str) -> str:
    """Servers refuse an empty text, and JSON for them holds no lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


def _complaint(reply: httpx.Response) -> str:
    hint = {
        401: " Set the API key ([encoder] api_key_env names its environment variable).",
        403: " Set the API key ([encoder] api_key_env names its environment variable).",
        404: " Check [encoder] name and api_base, which ends in /v1 with most servers.",
    }.get(reply.status_code, "")
    return f"it says {reply.status_code} {reply.reason_phrase}: {reply.text[:200].strip()!r}.{hint}"


def _retry_after_s(reply: httpx.Response) -> float | None:
    """Seconds, or a date."""
    header = reply.headers.get("retry-after", "")
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
