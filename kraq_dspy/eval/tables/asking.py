"""Asks the programs and retrievers of a table every question, and makes a row of each answer."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

import dspy

from kraq_dspy.errors import (
    BudgetExceededError,
    ConfigError,
    IndexStateError,
    MissingExtraError,
    MissingLogprobsError,
    ServerDownError,
)
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow, RowWriter
from kraq_dspy.eval.tables import systems
from kraq_dspy.eval.tables.indexes import PreparedIndex
from kraq_dspy.eval.tables.made_with import memory_mb
from kraq_dspy.eval.tables.run import Run
from kraq_dspy.eval.tables.scoring import RowScorer
from kraq_dspy.eval.tables.table import System
from kraq_dspy.models.lms.defaults import own_adapter
from kraq_dspy.models.lms.journal import Answer, TappedJournal, working_on
from kraq_dspy.models.lms.meter import Price, prices_of
from kraq_dspy.records import Hit, Usage
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice

ENDS_THE_RUN = (
    BudgetExceededError, ServerDownError, MissingLogprobsError, MissingExtraError, ConfigError, IndexStateError,
)  # fmt: skip

EVIDENCE, EXCERPT = 3, 240
"""Passages of which a row keeps the beginning, and its characters."""

Work = Callable[[Example], ResultRow]
T = TypeVar("T")


def measure(run: Run, folder: Path) -> None:
    """Programs or retrievers. Those whose settings differ work with an index or with models of their own, one group
    after the other; what a person wrote wrongly ends the run before anything is asked."""
    kept, notes = systems.distinct(run.table.systems_for(run.questions.dataset.name), run.settings)
    if run.table.kind == "answers":
        for system, _ in kept:
            systems.program_of(system, seed=run.options.seed, paper=run.table.of_papers)
    writer: RowWriter | None = None
    for settings, group in _groups(kept):
        with prepared_space(run, settings, group) as (index, space):
            writer = writer or run.writer(folder, index, {"notes": notes})
            asking = SystemRunner(run, space, run.scorer(space.models), prices_of(settings))
            # All of a group are made before its first is run: what cannot be made ends the run before it costs.
            for system, work, at_once in [asking.work(system) for system in group]:
                run.ask_all(system.name, work, writer, at_once=at_once)


@contextmanager
def prepared_space(run: Run, settings: Settings, group: Sequence[System]) -> Iterator[tuple[PreparedIndex, Workspace]]:
    """The index of these settings with what the systems look up, opened."""
    index = run.index(settings, random_questions=any(map(systems.asks_random, group)))
    if needed := systems.needed(run.table, group):
        systems.prepare(index.path, needed, settings, run.embedder, run.models(settings), run.progress)
    models = run.models(settings)
    with Workspace.open(index.path, settings=settings, embedder=run.embedder, models=models) as space:
        yield index, space
        space.models.close()


def _groups(kept: list[tuple[System, Settings]]) -> list[tuple[Settings, list[System]]]:
    """Systems by their settings, in the order of the table."""
    groups: list[tuple[Settings, list[System]]] = []
    for system, settings in kept:
        group = next((members for other, members in groups if other == settings), None)
        if group is None:
            groups.append((settings, [system]))
        else:
            group.append(system)
    return groups


class SystemRunner:
    """The systems of one group, over one index."""

    def __init__(self, run: Run, space: Workspace, scorer: RowScorer, prices: Mapping[str, Price]) -> None:
        self.run = run
        self.space = space
        self.scorer = scorer
        self.prices = prices

    def work(self, system: System) -> tuple[System, Work, int]:
        """The system, what it does with a question, and how many of them at once."""
        if self.run.table.kind == "retrievers":
            return system, self._finder(system), self.run.concurrency
        choice = systems.program_of(system, seed=self.run.options.seed, paper=self.run.table.of_papers)
        program = systems.make_program(self.space, system, choice)
        at_once = max(1, self.run.concurrency // choice.calls_at_once)
        return system, self._answerer(system, choice, program), at_once

    def _answerer(self, system: System, choice: ProgramChoice, program: dspy.Module) -> Work:
        def answer(example: Example) -> ResultRow:
            outcome = measured(
                system.name, example, self.prices, lambda: self.space.ask(program, example.question, next_questions=0)
            )
            if isinstance(outcome, ResultRow):
                return outcome
            prediction, extra = outcome
            row = ResultRow(example.id, system.name, answer=str(prediction.answer), extra=extra)
            try:
                scores = self.scorer(example, prediction, choice.budget)
            except ENDS_THE_RUN:
                raise
            except Exception as error:  # noqa: BLE001 (costs its question; the reason is the row)
                return replace(row, failure=reason_of(error))
            return replace(
                row,
                metrics=scores.values,
                failed_metrics=scores.failed,
                timings=systems.timings_of(choice, prediction),
                hit_ids=tuple(hit.chunk.id for hit in prediction.hits),
                extra={**extra, "undefined": scores.undefined, "evidence": excerpts(prediction.hits)},
            )

        return answer

    def _finder(self, system: System) -> Work:
        """Each budget is a search of its own: what a retriever finds with 5 need not be the best 5 of its 20."""
        retrieve = self.space.retriever(system.use, **systems.own_options(system))
        of_budget = {
            budget: RowScorer([name for name in self.scorer.names if name.endswith(f"@{budget}")], self.run.embedder)
            for budget in self.run.table.budgets
        }

        def find(example: Example) -> ResultRow:
            values: dict[str, float] = {}
            undefined: list[str] = []
            seconds: dict[str, float] = {}

            def search() -> Sequence[Hit]:
                hits: Sequence[Hit] = ()
                for budget, score in of_budget.items():
                    started = perf_counter()
                    hits = retrieve(example.question, budget)
                    seconds[f"k={budget}"] = perf_counter() - started
                    scores = score(example, dspy.Prediction(hits=hits), budget)
                    values.update(scores.values)
                    undefined.extend(scores.undefined)
                return hits

            outcome = measured(system.name, example, self.prices, search)  # some retrievers ask a model
            if isinstance(outcome, ResultRow):
                return outcome
            hits, extra = outcome
            ids = tuple(hit.chunk.id for hit in hits)
            extra["undefined"] = undefined
            return ResultRow(example.id, system.name, metrics=values, timings=seconds, hit_ids=ids, extra=extra)

        return find


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
