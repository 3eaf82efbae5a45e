"""Keeps what a compile paid for: every answer on disk as it comes, counted, and given again instead of asked again.

An optimizer asks in a fixed order that follows from its seed and from the answers. So an
interrupted optimizer gets the replies of the first run and resumes where it stopped, whatever it
keeps in its own memory.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import orjson
from dspy.lm15 import Request, Response

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.dspy_internals import request_to_dict, response_from_dict, response_to_dict
from kraq_dspy.errors import ConfigError, KraqError
from kraq_dspy.models.lms.engines.engine import Engine
from kraq_dspy.models.lms.kraq_lm import adopted
from kraq_dspy.models.lms.meter import Call, Limits, Meter
from kraq_dspy.ports import Progress
from kraq_dspy.records import Usage
from kraq_dspy.steps.journal import JournalFile

STAGE = "optimize"


KeptAnswers = JournalFile[str, Mapping[str, Any]]
"""Answers by request. Safe for threads; one process at a time."""


def kept_answers(path: Path | None = None) -> KeptAnswers:
    """The answers of an earlier run in that file, in memory without one; a new one is on the disk before the next call.

    Raises IndexLockedError while another process has the file, ConfigError if a line cannot be read.
    """
    return JournalFile(
        path, lambda line: (line["key"], line["answer"]), "the answers of an earlier run", ConfigError, is_private=True
    )


class Spending(SharedByCopies):
    """Counts what one compile asked, and ends it before it asks too much.

    `fault` is the error that has to end the compile. DSPy's optimizers take every error for a wrong answer and go on,
    so it is kept here, every later call meets it at once, and `check` raises it at the end of a step. Safe for threads.
    """

    def __init__(self, budget: int | None, progress: Progress) -> None:
        self.fault: KraqError | None = None
        self.stage = STAGE
        self.progress = progress
        self.meter = Meter(Limits(max_calls=budget, calls_option="--budget-calls"))

    def begin(self, stage: str) -> None:
        self.stage = stage
        self.progress.start(stage, None)

    def check(self) -> None:
        if self.fault is not None:
            raise self.fault

    def replay(self) -> None:
        self.meter.count_replay()
        self.progress.advance(self.stage)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """A KraqError in the block ends the compile."""
        try:
            yield
        except KraqError as error:
            self.fault = self.fault or error
            raise

    @contextmanager
    def call(self, model: str) -> Iterator[Call]:
        """Raises BudgetExceededError instead of letting the call begin. A call that ends without `usage` is free."""
        self.check()
        with self.ending(), self.meter.call(STAGE, model, 0) as call:
            yield call
        if (used := call.usage) is not None:
            self.progress.advance(
                self.stage, prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
            )

    def guard(self, metric: Any) -> Any:
        """The metric, whose own errors end the compile: DSPy would count them as wrong answers."""

        def guarded(*arguments: Any, **options: Any) -> Any:
            with self.ending():
                return metric(*arguments, **options)

        return guarded


class KeptEngine(SharedByCopies):
    """A model's engine that gives an answer which is kept, else asks the one that it wraps and keeps that.

    Equal requests have one answer where the temperature is unset or 0, as with DSPy's cache; at another temperature a
    request is a resample, and its n-th answer is found again as the n-th. By `ledger` and `inner` the adapter knows
    whether replies can be held to a schema.
    """

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = False

    def __init__(self, model: str, engine: Engine, answers: KeptAnswers, spending: Spending) -> None:
        self._model = model
        self.engine = engine
        self.ledger = engine.ledger
        self.inner = engine.inner
        self.supported_params = engine.supported_params
        self._address = (engine.ledger.settings.api_base or "").encode()
        self._answers = answers
        self._spending = spending
        self._turns: Counter[str] = Counter()
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        key = self._key(request)
        stored = self._answers.get(key)
        if stored is not None:
            self._spending.replay()
            return response_from_dict(stored)
        with self._spending.call(self._model) as call:
            response: Response = self.engine.complete(request)
            call.usage = Usage(1, response.usage.input_tokens or 0, response.usage.output_tokens or 0)
            self._answers.keep({"key": key, "answer": response_to_dict(response)})
        return response

    def _key(self, request: Request) -> str:
        body = orjson.dumps(request_to_dict(request), option=orjson.OPT_SORT_KEYS)
        key = hashlib.blake2b(self._address + body, digest_size=16).hexdigest()
        if not request.config.temperature:
            return key
        with self._lock:
            self._turns[key] += 1
            return f"{key}-{self._turns[key]}"


def kept_model(lm: dspy.BaseLM, answers: KeptAnswers, spending: Spending) -> dspy.LM:
    """The model with its answers kept."""
    lm = adopted(lm, Meter())
    if isinstance(lm.engine, KeptEngine):
        return lm
    return lm.copy(engine=KeptEngine(lm.model, lm.engine, answers, spending), cache=False, num_retries=0)
