"""Asks one system one question, and makes a row of what comes: answer, scores, evidence, and what it took."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, process_time
from typing import Any, TypeVar

import dspy

from kraq_dspy.errors import (
    BudgetExceededError,
    ConfigError,
    EvaluationError,
    IndexStateError,
    MissingExtraError,
    MissingLogprobsError,
    ServerDownError,
)
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.latency import TOTAL, Timings
from kraq_dspy.eval.rows import ResultRow, memory_mb
from kraq_dspy.eval.tables.scoring import RowScorer
from kraq_dspy.models.lms.meter import Answer, Price, TappedJournal, working_on
from kraq_dspy.models.lms.roles import own_adapter
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Hit, Usage
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice

T = TypeVar("T")

ENDS_THE_RUN = (
    BudgetExceededError, ServerDownError, MissingLogprobsError, MissingExtraError, ConfigError, IndexStateError,
)  # fmt: skip

EVIDENCE, EXCERPT = 3, 240
"""Passages of which a row keeps the beginning, and its characters."""


@dataclass(frozen=True, slots=True)
class AskedSystem:
    """A program or a retriever under its name in the report. `about` tells what it is made of.

    `choice` is that of a program made by its name, which knows its stages and how many calls it has in flight.
    """

    name: str
    asked: dspy.Module | Retriever
    answers: bool
    about: Mapping[str, str]
    choice: ProgramChoice | None = None


@dataclass(frozen=True)
class Asking:
    """Asks a system one question, and makes a row of what comes."""

    system: AskedSystem
    scorer: RowScorer
    prices: Mapping[str, Price]
    space: Workspace | None
    k: int

    def __call__(self, example: Example) -> ResultRow:
        outcome = measured(self.system.name, example, self.prices, lambda: self._asked(asked_of(example)))
        if isinstance(outcome, ResultRow):
            return outcome
        (prediction, seconds), extra = outcome
        hits = prediction.get("hits") or ()
        row = ResultRow(
            example.id,
            self.system.name,
            answer=str(prediction.get("answer") or ""),
            timings=seconds,
            hit_ids=tuple(hit.chunk.id for hit in hits),
            extra={**extra, "evidence": excerpts(hits)},
        )
        try:
            scores = self.scorer(example, prediction, self._budget)
        except ENDS_THE_RUN:
            raise
        except Exception as error:  # noqa: BLE001 (costs its question; the reason is the row)
            return replace(row, failure=reason_of(error))
        extra = {**row.extra, "undefined": scores.undefined}
        return replace(row, metrics=scores.values, failed_metrics=scores.failed, extra=extra)

    @property
    def _budget(self) -> int | None:
        if self.system.choice is not None:
            return self.system.choice.budget
        return None if self.system.answers else self.k

    def _asked(self, question: str) -> tuple[dspy.Prediction, Mapping[str, Any]]:
        started = perf_counter()
        asked = self.system.asked
        if not self.system.answers:
            prediction = dspy.Prediction(hits=asked(question, self.k))
        elif self.space is not None and isinstance(asked, dspy.Module):
            prediction = self.space.ask(question, asked, next_questions=0)
        else:
            prediction = asked(question=question)  # type: ignore[call-arg,assignment]
        if isinstance(prediction, str):
            prediction = dspy.Prediction(answer=prediction)
        if self.system.answers and prediction.get("answer") is None:
            if prediction.get("response") is None:
                fields = ", ".join(prediction.keys()) or "nothing"
                raise EvaluationError(f"The program's prediction has no `answer`; it has {fields}.")
            prediction = dspy.Prediction(**{**dict(prediction.items()), "answer": prediction.response})
        seconds = perf_counter() - started
        stages = timings_of(self.system.choice, prediction) if self.system.choice else {}
        return prediction, stages or {"ask": seconds, "total": seconds}


def measured(
    system: str,
    example: Example,
    prices: Mapping[str, Price],
    work: Callable[[], T],
    facts: Mapping[str, Any] | None = None,
) -> tuple[T, dict[str, Any]] | ResultRow:
    """What `work` returns, and what a row's `extra` says of it: `facts`, or those of the question, and what the models
    took. A row with the reason where `work` fails, which costs this question alone."""
    spent = SpendingJournal(prices)
    about = facts_of(example) if facts is None else facts
    try:
        with working_on(system, example.id, spent), own_adapter(), dspy.context(disable_history=True):
            outcome = work()
    except ENDS_THE_RUN:
        raise
    except Exception as error:  # noqa: BLE001 (the reason is the row)
        return ResultRow(example.id, system, failure=reason_of(error), extra={**about, "usage": spent.to_dict()})
    return outcome, {**about, "usage": spent.to_dict()}


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
        """With the seconds since it began, those that the process computed meanwhile, and what it holds in memory."""
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


def asked_of(example: Example) -> str:
    """The question as a program is asked it: of a claim (PubHealth) it says which verdicts there are."""
    if example.type == "veracity":
        return f"{example.question}\nIs this claim true, false, or a mixture of both?"
    return example.question


def facts_of(example: Example) -> dict[str, Any]:
    """What the report shows beside an answer."""
    return {"question": example.question, "gold": list(example.answers[:5]), "type": example.type}


def excerpts(hits: Sequence[Hit]) -> list[str]:
    """The beginnings of the first passages, each on one line: what the report shows of an answer's evidence."""
    lines = (" ".join(hit.chunk.passage.split()) for hit in hits[:EVIDENCE])
    return [line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…" for line in lines]


def reason_of(error: Exception) -> str:
    text = str(error) or "no message"
    return f"{type(error).__name__}: {text if len(text) <= 500 else text[:500] + '...'}"


def timings_of(choice: ProgramChoice, prediction: dspy.Prediction) -> Timings:
    """Seconds by stage, and "total" on the clock; empty for a program that measures nothing."""
    seconds: Mapping[str, float] = choice.seconds(prediction)
    return {TOTAL if stage == "wall" else stage: time for stage, time in seconds.items()}
