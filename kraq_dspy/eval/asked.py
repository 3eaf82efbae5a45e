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
from kraq_dspy.eval.latency import TOTAL
from kraq_dspy.eval.recorded import RecordedAnswers, without_recorded
from kraq_dspy.eval.refused import what_was_told
from kraq_dspy.eval.rows import ResultRow, memory_mb
from kraq_dspy.eval.scoring import RowScorer
from kraq_dspy.models.lms.meter import Answer, Price, TappedJournal, working_on
from kraq_dspy.models.lms.roles import own_adapter
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Hit, Usage
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice

T = TypeVar("T")

ENDS_THE_RUN = (
    errors.BudgetExceededError, errors.ServerDownError, errors.MissingLogprobsError, errors.MissingExtraError,
    errors.ConfigError, errors.IndexStateError,
)  # fmt: skip

EVIDENCE, EXCERPT = 3, 240
"""Passages of which a row keeps the beginning, and its characters."""


@dataclass(frozen=True, slots=True)
class AskedSystem:
    """A program or a retriever under its name in the report. `about` tells what it is made of.

    `choice` is that of a program made by its name, which knows its stages and how many calls it has in flight. `make`
    makes the same system of another index, for questions that hide documents; None if nobody knows how.
    """

    name: str
    asked: dspy.Module | Retriever | RecordedAnswers
    answers: bool
    about: Mapping[str, str]
    choice: ProgramChoice | None = None
    make: Callable[[Workspace], dspy.Module | Retriever] | None = None


@dataclass(frozen=True)
class Asking:
    """Asks a system one question, and makes a row of what comes. A retriever is asked for `k` passages.

    `rest` is the index without the documents that questions hide, where any does. With `tells_refusals` a row keeps
    whether the question was refused.
    """

    system: AskedSystem
    scorer: RowScorer
    prices: Mapping[str, Price]
    space: Workspace | None
    k: int
    rest: Workspace | None = None
    tells_refusals: bool = False

    def __call__(self, example: Example) -> ResultRow:
        def row_of(timed: tuple[dspy.Prediction, Mapping[str, Any]]) -> ResultRow:
            prediction, seconds = timed
            hits = prediction.get("hits") or ()
            choice = self.system.choice
            is_recorded = isinstance(self.system.asked, RecordedAnswers)
            scores = self.scorer(
                without_recorded(example) if is_recorded else example,
                prediction,
                choice.budget if choice else None if self.system.answers else self.k,
            )

            refusal: dict[str, Any] = {}
            if self.tells_refusals:
                refusal = {"refusal": what_was_told(example, prediction, answers=self.system.answers)}
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
                    **refusal,
                    **({"usage": {}} if is_recorded else {}),  # nothing was asked
                    **nearest_question(prediction),
                },
            )

        return measured(self.system.name, example, self.prices, lambda: self._asked(example), row_of)

    @cached_property
    def _over_the_rest(self) -> dspy.Module | Retriever:
        """The system as it is without the hidden documents. Raises EvaluationError if it cannot be made so."""
        if self.rest is None or self.system.make is None:
            raise errors.EvaluationError(
                f"The question hides documents, and kraq cannot hide them from {self.system.name!r}, which it did not "
                "make. Give a program or retriever by its name."
            )
        try:
            return self.system.make(self.rest)
        except errors.KraqError as error:  # what has to be prepared first: these questions' affair alone
            raise errors.EvaluationError(f"The question hides documents: {error}") from error

    def _asked(self, example: Example) -> tuple[dspy.Prediction, Mapping[str, Any]]:
        """The prediction, and its seconds by stage."""
        question, system, space = example.question, self.system.asked, self.space
        if isinstance(system, RecordedAnswers):
            return system.of(example), {}
        if hidden_documents(example):
            system, space = self._over_the_rest, self.rest

        started = perf_counter()
        if example.type == "veracity":
            question += "\nIs this claim true, false, or a mixture of both?"
        if not self.system.answers:
            prediction = dspy.Prediction(hits=system(question, self.k))
        elif space is not None and isinstance(system, dspy.Module):
            prediction = space.ask(question, system, next_questions=0)
        else:
            prediction = system(question=question)  # type: ignore[call-arg,assignment]
        if self.system.answers:
            prediction = _with_answer(prediction)
        whole = perf_counter() - started

        if self.tells_refusals and space is not None and "answerable" not in prediction:
            judged = space.answerability(example.question)
            prediction.answerable, prediction.answerable_score = judged.is_answerable, judged.score

        stages = self.system.choice.seconds(prediction) if self.system.choice else {}
        timings = {TOTAL if stage == "wall" else stage: seconds for stage, seconds in stages.items()}
        return prediction, timings or {"ask": whole, TOTAL: whole}


def _with_answer(prediction: dspy.Prediction | str) -> dspy.Prediction:
    """The prediction of a program with its `answer`, which it may call `response`, or return as a text alone."""
    if isinstance(prediction, str):
        return dspy.Prediction(answer=prediction)
    if prediction.get("answer") is not None:
        return prediction
    if prediction.get("response") is None:
        fields = ", ".join(prediction.keys()) or "nothing"
        raise errors.EvaluationError(f"The program's prediction has no `answer`; it has {fields}.")
    return dspy.Prediction(**{**dict(prediction.items()), "answer": prediction.response})


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
    lines = (" ".join(hit.chunk.passage.split()) for hit in hits[:EVIDENCE])
    return [line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…" for line in lines]
