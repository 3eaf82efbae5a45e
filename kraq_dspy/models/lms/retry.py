"""Says when a model server is asked again, and when nobody asks it any more."""

import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from dspy import lm15

from kraq_dspy.errors import KraqError, ModelError, ServerDownError, counted
from kraq_dspy.settings import RoleSettings


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits between the attempts of one call, in seconds.

    Args:
        retries: the most further attempts, 0 or more.
        first_s: the first wait. Each further wait is twice as long.
        longest_s: the longest wait. A random part, up to half, is taken off each wait, so that callers spread
            out.
        patience_s: the longest Retry-After of a server to wait for. A longer one ends the call.

    >>> [Backoff(retries=2).wait(attempt, chance=lambda: 0.0) for attempt in range(3)]
    [0.5, 1.0, None]
    """

    retries: int = RoleSettings.retries
    first_s: float = 0.5
    longest_s: float = 20.0
    patience_s: float = 120.0

    def wait(
        self, attempt: int, retry_after_s: float | None = None, chance: Callable[[], float] = random.random
    ) -> float | None:
        """Seconds before attempt `attempt + 1`, or None to give up. `attempt` counts from 0."""
        if attempt >= self.retries or (retry_after_s or 0.0) > self.patience_s:
            return None
        own = min(self.first_s * 2.0 ** min(attempt, 30), self.longest_s)
        return retry_after_s + own / 2 * chance() if retry_after_s else own * (1 - chance() / 2)


CONTEXT_OVERFLOW = re.compile(
    r"maximum context length|max(imum)? model length|max_model_len|context (length|window|size)|prompt is too long|"
    r"reduce the length|too many tokens|input is too long|exceeds? the (model's )?(context|maximum)",
    re.IGNORECASE,
)


class ServerHealth:
    """Remembers failures to reach one server, over all calls and threads; any answer, an error too, forgets them.

    After `limit` failures in a row the server counts as down as soon as they span `span_s` seconds, or as soon as a
    call has no retries left: many callers that fail at once survive a restart of the server, and a dead server stops a
    long run with one message. After `rest_s` seconds, calls are let through again to see.
    """

    def __init__(self, where: str, limit: int = 10, span_s: float = 5.0, rest_s: float = 30.0) -> None:
        self.where = where
        self.limit = limit
        self.span_s = span_s
        self.rest_s = rest_s
        self._failures = 0
        self._since = 0.0
        self._down_since: float | None = None
        self._reason = ""
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raises ServerDownError while the server counts as down."""
        with self._lock:
            if self._down_since is None:
                return
            if time.monotonic() - self._down_since < self.rest_s:
                raise self._down()
            self._down_since = None
            self._failures = self.limit - 1  # one more failure and it is down again

    def answered(self) -> None:
        with self._lock:
            self._failures = 0
            self._down_since = None

    def failed(self, reason: str, *, giving_up: bool) -> None:
        """Count it. Raises ServerDownError when it was one too many."""
        with self._lock:
            now = time.monotonic()
            if not self._failures:
                self._since = now
            self._failures += 1
            self._reason = reason
            if self._failures >= self.limit and (giving_up or now - self._since >= self.span_s):
                self._down_since = now
                raise self._down()

    def _down(self) -> ServerDownError:
        return ServerDownError(
            f"No answer from {self.where}: {counted(self._failures, 'attempt')} in a row failed ({self._reason}). "
            "Check that the server runs, that api_base is right, and that timeout_s is long enough; then start again: "
            "what was answered is kept."
        )


def unreachable(error: lm15.LM15Error) -> bool:
    """Whether no answer came at all. An HTTP status, also that of a gateway's time-out, is an answer."""
    return isinstance(error, lm15.TransportError | lm15.TimeoutError) and error.status is None


def clearer(error: lm15.LM15Error, model: str, where: str) -> lm15.LM15Error | KraqError:
    """The error under its right name.

    Servers say in words that a prompt is too long; that becomes ContextLengthError. What every further call would fail
    with as well (key, bill, name of the model) becomes ModelError, so that a run stops at the first.
    """
    if isinstance(error, lm15.ContextLengthError):
        return error
    if isinstance(error, lm15.AuthError):
        return ModelError(f"{where} refused the API key for {model!r}: {error.message} Set api_key_env of its role.")
    if isinstance(error, lm15.BillingError):
        return ModelError(f"{where} refused to serve {model!r} for the account's credit: {error.message}")
    if isinstance(error, lm15.UnsupportedModelError) or error.status == 404:
        return ModelError(
            f"{where} has no model {model!r}: {error.message} Compare the name with GET /v1/models, and api_base with "
            "the server's address (it usually ends in /v1)."
        )
    if isinstance(error, lm15.InvalidRequestError) and CONTEXT_OVERFLOW.search(error.message):
        return lm15.ContextLengthError(error.message, provider=error.provider, status=error.status)
    return error
