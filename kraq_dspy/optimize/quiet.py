"""Runs an optimizer with fixed chance, and sends what it prints to the log."""

import contextlib
import io
import logging
import random
from collections.abc import Iterator
from typing import Any

import tqdm

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def same_chance(seed: int) -> Iterator[None]:
    """DSPy draws from the process's generator in places: from the same seed, an interrupted compile asks the same."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What optimizers print goes to the log, and their bars and their chatter nowhere."""
    loggers = [logging.getLogger(name) for name in ("dspy", "optuna", "gepa")]
    levels = [each.level for each in loggers]
    constructor = tqdm.tqdm.__init__

    def without_bar(self: Any, *arguments: Any, **options: Any) -> None:
        constructor(self, *arguments, **{**options, "disable": True})

    tqdm.tqdm.__init__ = without_bar
    for each in loggers:
        each.setLevel(logging.CRITICAL if not logger.isEnabledFor(logging.INFO) else logging.INFO)
    try:
        with contextlib.redirect_stdout(_IntoLog()):
            yield
    finally:
        tqdm.tqdm.__init__ = constructor
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


class _IntoLog(io.TextIOBase):
    def write(self, text: str) -> int:
        if text.strip():
            logger.info("%s", text.strip())
        return len(text)
