"""Asks one system one question, and makes a row of what comes: answer, scores, evidence, and what it took."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter, process_time
from typing import Any, TypeVar

import dspy

from kraq_dspy import errors
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.refused import what_was_told
from kraq_dspy.eval.rows import ResultRow, clipped, memory_mb
from kraq_dspy.eval.scoring import RowScorer
from kraq_dspy.eval.system import AskedSystem
from kraq_dspy.models.lms.meter import Answer, Price, TappedJournal, working_on
from kraq_dspy.models.lms.roles import own_adapter
from kraq_dspy.records import Hit, Usage
from kraq_dspy.workspace import Workspace

T = TypeVar("T")

ENDS_THE_RUN = (
    errors.BudgetExceededError, errors.ServerDownError, errors.MissingLogprobsError, errors.MissingExtraError,
    errors.ConfigError, errors.IndexStateError,
)  # fmt: skip

EVIDENCE, EXCERPT = 3, 240
"""Passages of which a row keeps the beginning, and its characters."""


@dataclass(frozen=True)
class Asking:
    """Asks a system one question, and makes a row of what comes. A retriever is asked for `k` passages.

    `rest` is the index without the documents that questions hide, where any does. With `tells_refusals` a row keeps
    whether the question was refused, with `counts_tokens` how many tokens the passages have.
    """

    system: AskedSystem
    scorer: RowScorer
    prices: Mapping[str, Price]
    space: Workspace | None
    k: int
    rest: Workspace | None = None
    tells_refusals: bool = False
    counts_tokens: bool = False

    def __call__(self, example: Example) -> ResultRow:
        def row_of(timed: tuple[dspy.Prediction, Mapping[str, Any]]) -> ResultRow:
            prediction, seconds = timed
            hits = prediction.get("hits") or ()
            scores = self.scorer(self.system.scored(example), prediction, self.system.passages(self.k))
            also: dict[str, Any] = {}
            if self.tells_refusals:
                also["refusal"] = what_was_told(example, prediction, answers=self.system.answers)
            if self.counts_tokens:
                also["tokens"] = sum(hit.chunk.n_tokens for hit in hits)
            if self.system.is_recorded:
                also["usage"] = {}  # nothing was asked
            return ResultRow(
                example.id,
                self.system.name,
                answer=str(prediction.get("answer") or ""),
                metrics=scores.values,
                failed_metrics=scores.failed,
                timings=seconds,
                hit_ids=tuple(hit.chunk.id for hit in hits),
                extra={
                    "evidence": excerpts(hits),
                    "undefined": scores.undefined,
                    **also,
                    **nearest_question(prediction),
                },
            )

        return measured(self.system.name, example, self.prices, lambda: self._asked(example), row_of)

    @cached_property
    def _without_hidden(self) -> AskedSystem:
        return self.system.without_hidden(self.rest)

    def _asked(self, example: Example) -> tuple[dspy.Prediction, Mapping[str, Any]]:
        """The prediction, and its seconds by stage."""
        system, space = self.system, self.space
        if hidden_documents(example) and not system.is_recorded:
            system, space = self._without_hidden, self.rest
        prediction, seconds = system.ask(example, space, self.k)

        is_judged = system.is_recorded or "answerable" in prediction
        if self.tells_refusals and space is not None and not is_judged:
            judged = space.answerability(example.question)
            prediction.answerable, prediction.answerable_score = judged.is_answerable, judged.score
        return prediction, seconds


def hidden_documents(example: Example) -> tuple[str, ...]:
    """The documents that a question must be asked without: a list, or in a cell of a csv a list in JSON."""
    value = example.metadata.get("hidden_documents") or ()
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("[") else [value]
    return tuple(map(str, value))


def measured(
    system: str, example: Example, prices: Mapping[str, Price], ask: Callable[[], T], row_of: Callable[[T], ResultRow]
) -> ResultRow:
    """The row that `row_of` makes of what `ask` returns, with the question and what the models took for `ask`.

    Where one of them fails, which costs this question alone, a row with the reason.
    """
    spent = SpendingJournal(prices)
    about: dict[str, Any] = {"question": example.question, "gold": list(example.answers[:5]), "type": example.type}
    try:
        try:
            with working_on(system, example.id, spent), own_adapter(), dspy.context(disable_history=True):
                outcome = ask()
        finally:
            about["usage"] = spent.to_dict()
            if half := example.metadata.get("half"):
                about["half"] = half
        row = row_of(outcome)
    except ENDS_THE_RUN:
        raise
    except Exception as error:  # noqa: BLE001 (the reason is the row)
        text = str(error) or "no message"
        reason = f"{type(error).__name__}: {text if len(text) <= 500 else text[:500] + '...'}"
        row = ResultRow(example.id, system, failure=reason)
    return replace(row, extra={**about, **row.extra})


class SpendingJournal(TappedJournal):
    """Adds up what answers took: calls, tokens, and money where the models have a price."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        super().__init__(self._add)
        self.usage = Usage()
        self._prices = prices
        self._cost = 0.0
        self._since = perf_counter(), process_time()
        self._lock = threading.Lock()

    def _add(self, answer: Answer) -> None:
        with self._lock:
            self.usage += answer.usage
            if answer.model in self._prices:
                self._cost += self._prices[answer.model].of(answer.usage)

    def to_dict(self) -> dict[str, float]:
        """Write the load as JSON values, with the seconds since it began, those that the process
        computed meanwhile, and what it holds in memory."""
        clock, computing = self._since
        return {
            "calls": self.usage.calls,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            **({"cost": self._cost} if self._prices else {}),
            "clock_s": perf_counter() - clock,
            "cpu_s": process_time() - computing,
            **memory_mb(),
        }


def nearest_question(prediction: dspy.Prediction) -> dict[str, dict[str, Any]]:
    """The stored question that a program looked up for the user's, q* of Algorithm 2; nothing for other programs."""
    proxy = prediction.get("proxy")
    if proxy is None:
        return {}
    return {"q*": {"text": proxy.question.text, "source": proxy.question.source, "similarity": proxy.similarity}}


def excerpts(hits: Sequence[Hit]) -> list[str]:
    """The beginnings of the first passages, each on one line: what the report shows of an answer's evidence."""
    return [clipped(hit.chunk.passage, EXCERPT) for hit in hits[:EVIDENCE]]
