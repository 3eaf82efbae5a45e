"""Asks encoders behind an OpenAI-compatible `/v1/embeddings`: OpenAI, vLLM, TEI, Ollama and others."""

import itertools
import json
import logging
import re
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.concurrency import run_all
from kraq_dspy._internal.dspy_internals import NetworkError
from kraq_dspy.asset.consent import require_no_secret
from kraq_dspy.errors import ModelError, UnembeddableError, counted, quoted
from kraq_dspy.models.embedders.text_encoder import TextEncoder
from kraq_dspy.models.lms.from_threads import in_loop
from kraq_dspy.models.lms.limited_transport import LimitedTransport
from kraq_dspy.models.lms.retry import CONTEXT_OVERFLOW, Backoff
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings, RoleSettings

logger = logging.getLogger(__name__)

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_ABOUT_TEXTS = frozenset({400, 413, 415, 422, 501})
"""What a server may answer because of what it was sent; of the others no smaller batch helps."""
_TOO_LONG = re.compile(
    rf"{CONTEXT_OVERFLOW.pattern}|too (?:long|large)|token limit|max(?:imum)? (?:input )?tokens", re.I
)
_NAMED = re.compile(rf"\bnan\b|{_TOO_LONG.pattern}", re.IGNORECASE)
"""Words by which an error 500 is no bad moment of the server's."""
_SHORTEST_CUT = 20  # characters


class _RefusedError(Exception):
    """A batch that the server does not embed as it is; the message says why."""


class EndpointEmbedder(TextEncoder):
    """Asks `{api_base}/embeddings` in batches of `batch_size`, up to `concurrency` at a time. Safe for threads.

    A busy or unreachable server is asked again as `backoff` says. It halves a rejected batch, down
    to the text at fault, and keeps the size that worked. It cuts a text that is too long until it
    fits, and logs that. `prefixes` go before queries and before passages. The dimension is learned
    from the first answer. Vectors are normalised here. A reply may have `reply_mb` megabytes.

    Raises UnembeddableError, with the vectors of the others, for single texts that the server does not embed, and
    ModelError when it cannot be reached, refuses all, or answers with what is no set of embeddings.
    """

    def __init__(
        self,
        model: str,
        api_base: str,
        *,
        api_key: str | None = None,
        prefixes: tuple[str, str] = ("", ""),
        batch_size: int = EncoderSettings.batch_size,
        concurrency: int = 4,
        backoff: Backoff | None = None,
        timeout_s: float = RoleSettings.timeout_s,
        reply_mb: int = EncoderSettings.reply_mb,
    ) -> None:
        require_no_secret(api_base, f"The api_base of the encoder {model!r}")
        self.query_prefix, self.passage_prefix = prefixes
        self.name = self._named(f"{model} at an endpoint")
        self._model = model
        self._url = f"{api_base.rstrip('/')}/embeddings"
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._backoff = backoff or Backoff(retries=5)
        self._learning = threading.Lock()
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._transport = LimitedTransport(self._url, timeout_s, reply_mb)

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r}, {self._url!r})"

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        # servers refuse an empty text, and JSON for them holds no lone surrogates
        full = [(prefix + text).encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        size = self._batch_size
        batches = [full[start : start + size] for start in range(0, len(full), size)]
        rows = list(itertools.chain.from_iterable(run_all(self._rows_of, batches, limit=self._concurrency)))

        reasons = {place: row for place, row in enumerate(rows) if isinstance(row, str)}
        if len(reasons) == len(rows):
            raise ModelError(f"{self._url} refused to embed with {self._model!r}: {reasons[0]}")
        if not reasons:
            return np.array(rows, np.float32)

        vectors = np.zeros((len(rows), self.dimension), np.float32)
        for place, row in enumerate(rows):
            if not isinstance(row, str):
                vectors[place] = row

        first, reason = next(iter(reasons.items()))
        raise UnembeddableError(
            f"{self._url} did not embed {len(reasons)} of {counted(len(rows), 'text')}, first "
            f"{quoted(full[first])}: {reason}",
            vectors,
            reasons,
        )

    def _rows_of(self, texts: list[str]) -> list[Vectors | str]:
        """Give each text its vector, or why it has none."""
        if len(texts) > self._batch_size:
            return self._halved(texts)

        try:
            rows = self._ask(texts)
        except _RefusedError as refusal:
            if len(texts) > 1:
                halved = self._halved(texts)
                smaller = -(-len(texts) // 2)
                with self._learning:
                    if smaller < self._batch_size and not any(isinstance(row, str) for row in halved):
                        self._batch_size = smaller
                        logger.info("%s gets %d texts at once from now on: %s", self._url, smaller, refusal)
                return halved
            if self._dimension is None and self.dimension:  # raises where the server embeds nothing at all
                logger.debug("It does embed: %s is at fault", quoted(texts[0]))
            return [self._row_of_a_part(texts[0], str(refusal))]

        if len(texts) == 1:
            return rows
        return [
            self._rows_of([text])[0] if isinstance(row, str) else row for text, row in zip(texts, rows, strict=True)
        ]

    def _halved(self, texts: list[str]) -> list[Vectors | str]:
        middle = len(texts) // 2
        return [*self._rows_of(texts[:middle]), *self._rows_of(texts[middle:])]

    def _row_of_a_part(self, text: str, reason: str) -> Vectors | str:
        """Encode as much of the beginning of a text that is too long as is taken; else why it has
        no vector."""
        part = text
        while _TOO_LONG.search(reason) and len(part) > _SHORTEST_CUT:
            part = part[: len(part) * 3 // 4]
            try:
                [row] = self._ask([part])
            except _RefusedError as refusal:
                reason = str(refusal)
                continue

            logger.warning("Of %s, %d of %d characters count: %s", quoted(text), len(part), len(text), reason)
            return row
        return reason

    def _ask(self, texts: list[str]) -> list[Vectors | str]:
        """Raises _RefusedError for what may be the texts' fault, ModelError for what is the server's.

        An error 500 may be either: a batch is sent once more and then halved, a single text as often as `backoff` says.
        """
        for attempt in itertools.count():
            status, asked_s = 0, None
            try:
                body = {"model": self._model, "input": texts}
                reply, content = in_loop(self._transport.post(self._url, self._headers, body))
            except NetworkError as error:
                problem = f"it cannot be reached: {error or type(error).__name__}"
            except CollectionLimitError as error:
                raise ModelError(str(error)) from error
            else:
                status = reply.status
                if 200 <= status < 300:
                    return self._read(content, len(texts))
                problem = _complaint(status, reply.reason, content)
                asked_s = _seconds(reply.header("retry-after"))
                is_fault = status == 500 and (_NAMED.search(problem) or (attempt and len(texts) > 1))
                if status in _ABOUT_TEXTS or is_fault:
                    raise _RefusedError(problem)
                if status not in _BUSY:
                    raise ModelError(f"{self._url} refused to embed with {self._model!r}: {problem}")

            pause_s = self._backoff.wait(attempt, asked_s)
            if pause_s is None:
                break
            logger.debug("Embedding again in %.1f s: %s", pause_s, problem)
            time.sleep(pause_s)

        if status == 500 and self._dimension is not None:
            raise _RefusedError(problem)

        raise ModelError(
            f"{self._url} did not embed with {self._model!r} in {counted(attempt + 1, 'attempt')}; {problem}. Check "
            "that the server runs at that address ([encoder] api_base), and go on: what was made before is kept."
        )

    def _read(self, content: bytes, n_texts: int) -> list[Vectors | str]:
        """The rows in the order of the texts: by their `index`, or by position if they have none."""
        try:
            data = json.loads(content)["data"]
            rows = {item.get("index", place): _row(item["embedding"]) for place, item in enumerate(data)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            shown = content[:200].decode("utf-8", "replace")
            raise ModelError(f"{self._url} answered with what are no embeddings: {shown!r}") from error

        if rows.keys() != set(range(n_texts)):
            embeddings = counted(len(data), "embedding")
            raise ModelError(f"{self._url} answered {counted(n_texts, 'text')} with {embeddings} of {self._model!r}.")

        widths = {len(row) for row in rows.values() if not isinstance(row, str)}
        with self._learning:
            if self._dimension is None and len(widths) == 1:
                (self._dimension,) = widths

        if widths - {self._dimension}:
            raise ModelError(
                f"{self._url} answered with embeddings of {sorted(widths)} numbers, not {self._dimension}."
            )
        return [rows[place] for place in range(n_texts)]


def _row(embedding: Any) -> Vectors | str:
    """The vector with length 1, or why there is none."""
    if embedding is None:
        return "the server made no embedding of it (null)"
    row = np.array(embedding, dtype=np.float32)
    if row.ndim != 1:
        raise ValueError(f"An embedding of shape {row.shape}.")
    length = np.linalg.norm(row)
    if not np.isfinite(length) or not length:
        return "the server made an embedding of it that is zero or not finite"
    return row / length


def _complaint(status: int, reason: str, content: bytes) -> str:
    hint = {
        401: " Set the API key ([encoder] api_key_env names its environment variable).",
        403: " Set the API key ([encoder] api_key_env names its environment variable).",
        404: " Check [encoder] name and api_base, which ends in /v1 with most servers.",
    }.get(status, "")
    shown = content.decode("utf-8", "replace").strip()[:200]
    return f"it says {status} {reason}: {shown!r}.{hint}"


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return None
