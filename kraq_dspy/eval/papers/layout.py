"""Puts the figures of runs into the rows and columns of a paper's table."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kraq_dspy.eval.papers.catalogue import PaperTable, TablePart, papers_tables
from kraq_dspy.eval.tables.summary import RunSummary, SystemSummary, TableSummary
from kraq_dspy.eval.tables.table import is_covered

Resource = Callable[[SystemSummary], float | None]

RESOURCES: Mapping[str, Resource] = {
    "latency": lambda system: system.latency.modelled.total if system.latency and system.latency.modelled else None,
    "seconds": lambda system: system.latency.total.mean if system.latency and system.latency.total else None,
    "cpu_percent": lambda system: system.resources.cpu_percent if system.resources else None,
    "memory_mb": lambda system: system.resources.memory_mb if system.resources else None,
    "memory_gb": lambda system: (
        system.resources.memory_mb / 1000 if system.resources and system.resources.memory_mb else None
    ),
    "gpu_mb": lambda system: system.resources.gpu_mb if system.resources else None,
}
"""Figures that are no scores but what an answer took. Where a table scores seconds itself, those count."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A paper's table with our figures; None where nothing was run. `datasets` are those of the rows that were.

    `notes` say which systems were left out, and why.
    """

    table: PaperTable
    rows: tuple[str, ...]
    ours: tuple[tuple[float | None, ...], ...]
    datasets: tuple[str, ...]
    models: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return all(value is None for row in self.ours for value in row)


def figures_of(summary: TableSummary) -> list[Figures]:
    """Every table of the papers of which the summary has figures.

    A table with settings of its own takes its figures from a run that was made for it, and from no other.
    """
    if not summary.runs:
        return []
    name, only = summary.runs[0].header.name, summary.runs[0].table.get("papers", ())
    laid_out = [
        lay_out(table, summary.runs)
        for table in papers_tables().values()
        if table.definition == name and (table.id in only if only else not table.settings)
    ]
    return [figures for figures in laid_out if not figures.is_empty]


def lay_out(table: PaperTable, runs: Sequence[RunSummary]) -> Figures:
    """Rows of a data set are taken from the run of it, or of a part of it ("hotpotqa-mini"); data sets that the paper
    did not use come below, in rows of their own."""
    by_name = {run.header.dataset: run for run in runs}
    rows: list[tuple[str, list[float | None]]] = []
    used: list[str] = []
    if any(row.dataset for row in table.rows):
        foreign = [name for name in by_name if not any(is_covered(name, known) for known in table.datasets)]
        pattern = [row for row in table.rows if row.dataset == table.datasets[0]]
        more = [
            replace(row, dataset=name, label=row.label.replace(row.dataset, name, 1))
            for name in foreign
            for row in pattern
        ]
        for row in (*table.rows, *more):
            run = next((by_name[name] for name in by_name if is_covered(name, row.dataset)), None)
            rows.append((row.label, [value_of(run, row.with_other(column)) for column in table.columns]))
            used += [run.header.dataset] if run else []
    else:
        own = [name for name in by_name if any(is_covered(name, known) for known in table.datasets)]
        for name in own or list(by_name)[:1]:
            for row in table.rows:
                values = [value_of(by_name[name], row.with_other(column)) for column in table.columns]
                rows.append((row.label, values))
            used.append(name)
            break
    notes = tuple(dict.fromkeys(note for run in runs for note in run.header.extra.get("notes", ())))
    return Figures(
        table, tuple(label for label, _ in rows), tuple(tuple(values) for _, values in rows),
        tuple(dict.fromkeys(used)), runs[0].header.models if runs else {}, notes,
    )  # fmt: skip


def value_of(run: RunSummary | None, cell: TablePart) -> float | None:
    """The figure that a cell names; in percent where the paper prints percent. None where the run has none."""
    if run is None:
        return None
    by_name = {system.name: system for system in run.systems}
    values = [_value(by_name.get(name), cell) for name in cell.systems]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    value = math.fsum(known) / len(known)
    if cell.against:
        other = _value(by_name.get(cell.against), cell)
        return None if not other else 100 * (1 - value / other)
    return 100 * value if cell.percent else value


def _value(system: SystemSummary | None, cell: TablePart) -> float | None:
    if system is None:
        return None
    score = system.cells.get(cell.metric)
    if score is None:
        return RESOURCES[cell.metric](system) if cell.metric in RESOURCES else None
    if cell.statistic != "mean":
        return score.quartiles[("q1", "q3").index(cell.statistic)] if score.quartiles else None
    return score.interval.estimate if score.interval else None
