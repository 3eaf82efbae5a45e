"""Asks the programs and retrievers of a table every question, and makes a row of each answer."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import dspy

from kraq_dspy.eval.asked import Asking, measured
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow, RowWriter
from kraq_dspy.eval.scoring import RowScorer, Scores
from kraq_dspy.eval.system import AskedSystem
from kraq_dspy.indexing.prepare.preparations import INSTRUCTED
from kraq_dspy.models.lms.meter import prices_of
from kraq_dspy.papers.tables import systems
from kraq_dspy.papers.tables.indexes import PreparedIndex
from kraq_dspy.papers.tables.run import Run
from kraq_dspy.papers.tables.table import System
from kraq_dspy.records import Hit
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

Work = Callable[[Example], ResultRow]


def measure(run: Run, folder: Path) -> None:
    """Programs or retrievers. Those whose settings differ work with an index or with models of their own, one group
    after the other; what a person wrote wrongly ends the run before anything is asked."""
    chosen, notes = run.systems()
    if run.table.kind == "answers":
        for system, _ in chosen:
            systems.program_of(system, seed=run.options.seed, paper=run.table.of_papers)

    groups: list[tuple[Settings, list[System]]] = []
    for system, settings in chosen:
        group = next((members for other, members in groups if other == settings), None)
        if group is None:
            groups.append((settings, [system]))
        else:
            group.append(system)

    writer: RowWriter | None = None
    for settings, group in groups:
        with prepared_space(run, settings, group) as (index, space):
            writer = writer or run.writer(folder, index, {"notes": notes})
            # All of a group are made before its first is run: what cannot be made ends the run before it costs.
            for system, (work, at_once) in [(system, work_of(run, space, system)) for system in group]:
                run.ask_all(system.name, work, writer, at_once=at_once)


@contextmanager
def prepared_space(run: Run, settings: Settings, group: Sequence[System]) -> Iterator[tuple[PreparedIndex, Workspace]]:
    """The index of these settings with what the systems look up, opened."""
    index = run.index(settings, random_questions=any(map(systems.asks_random, group)))
    if needed := systems.needed(run.table, group):
        models = run.models(settings)
        with Workspace.open(index.path, settings=settings, embedder=run.embedder, lm=models, write=True) as space:
            for preparation, options in needed:
                if preparation is INSTRUCTED and settings.instructed.kind != "sentences":
                    nearest = space.questions(options.questions)
                    asked = (nearest(example.question, 1) for example in run.questions.examples)
                    options = replace(options, only=frozenset(hit.question.id for hits in asked for hit in hits))
                if preparation.is_there is None or not preparation.is_there(space):
                    preparation.make(space, options, run.progress)

    models = run.models(settings)
    with Workspace.open(index.path, settings=settings, embedder=run.embedder, lm=models) as space:
        yield index, space
        space.models.close()


def work_of(run: Run, space: Workspace, system: System) -> tuple[Work, int]:
    """Return what a system does with a question, and with how many of them at once."""
    if run.table.kind == "retrievers":
        return _finding(run, space, system), run.concurrency
    choice = systems.program_of(system, seed=run.options.seed, paper=run.table.of_papers)
    program = space.make_program(choice, state=system.options.get("state"))
    systems.require_steps(system, program)
    if run.table.as_paper:
        run.table.as_paper.give_prompts(program)
    asked_system = AskedSystem(system.name, program, answers=True, choice=choice)
    asking = Asking(asked_system, run.scorer(space.models), prices_of(space.models.settings), space, choice.budget)
    return asking, max(1, run.concurrency // choice.calls_at_once)


def _finding(run: Run, space: Workspace, system: System) -> Work:
    """Each budget is a search of its own: what a retriever finds with 5 need not be the best 5 of its 20."""
    retrieve = space.retriever(system.use, **systems.own_options(system))
    prices = prices_of(space.models.settings)
    of_budget = {
        budget: RowScorer([name for name in run.table.metrics if name.endswith(f"@{budget}")], run.embedder)
        for budget in run.table.budgets
    }

    def work(example: Example) -> ResultRow:
        seconds: dict[str, float] = {}
        scores = Scores()

        def search() -> Sequence[Hit]:
            hits: Sequence[Hit] = ()
            for budget, score in of_budget.items():
                started = perf_counter()
                hits = retrieve(example.question, budget)
                seconds[f"k={budget}"] = perf_counter() - started
                own = score(example, dspy.Prediction(hits=hits), budget)
                scores.values.update(own.values)
                scores.undefined.extend(own.undefined)
            return hits

        def row_of(hits: Sequence[Hit]) -> ResultRow:
            ids, extra = tuple(hit.chunk.id for hit in hits), {"undefined": scores.undefined}
            return ResultRow(example.id, system.name, metrics=scores.values, timings=seconds, hit_ids=ids, extra=extra)

        return measured(system.name, example, prices, search, row_of)  # some retrievers ask a model

    return work
