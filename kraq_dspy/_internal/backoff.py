"""Says how long to wait before a server is called again."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between the attempts of one call, in seconds: `first_s`, doubled each time up to `longest_s`, shortened at
    random by up to half so that callers spread out. A server's Retry-After is waited in full; one beyond `patience_s`
    ends the call instead."""

    retries: int = 3
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
