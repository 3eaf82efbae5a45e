"""Asks the programs and retrievers of a table every question, and makes a row of each answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import dspy

from kraq_dspy.eval.asked import AskedSystem, Asking, measured
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow, RowWriter
from kraq_dspy.eval.tables import systems
from kraq_dspy.eval.tables.data import PreparedIndex
from kraq_dspy.eval.tables.run import Run
from kraq_dspy.eval.tables.scoring import RowScorer
from kraq_dspy.eval.tables.table import System
from kraq_dspy.models.lms.meter import Price, prices_of
from kraq_dspy.records import Hit
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

Work = Callable[[Example], ResultRow]


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
        if self.run.table.as_paper:
            self.run.table.as_paper.give_prompts(program)
        at_once = max(1, self.run.concurrency // choice.calls_at_once)
        asked = AskedSystem(system.name, program, True, {}, choice)
        return system, Asking(asked, self.scorer, self.prices, self.space, choice.budget), at_once

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
