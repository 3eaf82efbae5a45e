"""Puts the figures of runs into the rows and columns of the papers' tables, and finds the reports of each table."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraq_dspy.errors import counted
from kraq_dspy.eval.latency import TOTAL, parallel_seconds
from kraq_dspy.eval.rows import HEADER_FILE
from kraq_dspy.eval.summary import RunSummary, SystemSummary, TableSummary
from kraq_dspy.papers.catalogue import PaperTable, TablePart, is_covered, papers_tables

RESOURCES: Mapping[str, Callable[[SystemSummary], float | None]] = {
    "latency": lambda system: parallel_seconds(system.stages) if TOTAL in system.stages else None,
    "seconds": lambda system: system.stages[TOTAL].mean if TOTAL in system.stages else None,
    "cpu_percent": lambda system: system.resources.get("cpu_percent"),
    "memory_mb": lambda system: system.resources.get("memory_mb"),
    "memory_gb": lambda system: system.resources["memory_mb"] / 1000 if "memory_mb" in system.resources else None,
    "gpu_mb": lambda system: system.resources.get("gpu_mb"),
}
"""Figures that are no scores but what an answer took. Where a table scores seconds itself, those count."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A paper's table with our figures; None if nothing was run. `datasets` are those of the rows that were.

    `scored` says for each figure of how many rows it is, and of how many it should be; None where they are as many.
    `smaller` says for each row what there was less of than the row's system asks for ("4 prepared", "3 passages").
    """

    table: PaperTable
    rows: tuple[str, ...]
    ours: tuple[tuple[float | None, ...], ...]
    datasets: tuple[str, ...]
    scored: tuple[tuple[tuple[int, int] | None, ...], ...]
    smaller: tuple[str, ...]

    @property
    def title(self) -> str:
        """What the table shows, with the true size of an FAQ cache or a corpus that is smaller than the paper's."""
        sizes = sorted(set(filter(None, self.smaller)))
        here = f" (here of {', '.join(sizes)})" if sizes else ""
        return f"{self.table.paper}, {self.table.number}: {self.table.shows}{here}"

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield for each row its label and its figures: ours, marked where rows of it failed ("47.3
        [3 of 4]"), behind it in brackets the printed one."""
        for number, (label, values) in enumerate(zip(self.rows, self.ours, strict=True)):
            theirs = self.table.theirs[number] if number < len(self.table.theirs) else ()
            printed = [f" ({shown(value)})" for value in theirs] or [""] * len(values)
            marks = [f" [{each[0]} of {each[1]}]" if each else "" for each in self.scored[number]]
            label = f"{label} ({self.smaller[number]})" if self.smaller[number] else label
            yield label, *(f"{shown(v)}{mark}{their}" for v, mark, their in zip(values, marks, printed, strict=True))


def figures_of(summary: TableSummary) -> list[Figures]:
    """Every table of the papers of which the summary has figures."""
    if not summary.runs:
        return []
    run = summary.runs[0]
    laid_out = [lay_out(table, summary.runs) for table in _made_by(run.header.name, run.table)]
    return [figures for figures in laid_out if any(value is not None for row in figures.ours for value in row)]


def lay_out(table: PaperTable, runs: Sequence[RunSummary]) -> Figures:
    """Rows of a data set are taken from the run of it, or of a part of it ("hotpotqa-mini"); data
    sets that the paper did not use come below, in rows of their own."""
    by_name = {run.header.dataset: run for run in runs}
    rows = _rows_for(table, list(by_name))
    run_of_row = [_run_on(row.dataset, by_name) for row in rows]

    figures, scored, smaller = [], [], []
    for run, row in zip(run_of_row, rows, strict=True):
        cells = [row.with_other(column) for column in table.columns]
        smaller.append(_smaller_size(run, cells))
        scored.append(tuple(rows_of(run, cell) for cell in cells))
        figures.append(tuple(value_of(run, cell) for cell in cells))
    used = tuple(dict.fromkeys(run.header.dataset for run in run_of_row if run))
    return Figures(table, tuple(row.label for row in rows), tuple(figures), used, tuple(scored), tuple(smaller))


def _rows_for(table: PaperTable, datasets: Sequence[str]) -> list[TablePart]:
    """The table's rows, and rows like them for the data sets that the paper did not use."""
    in_paper = []
    for name in datasets:
        if any(is_covered(name, known) for known in table.datasets):
            in_paper.append(name)

    rows = list(table.rows)
    if any(row.dataset for row in rows):
        pattern = [row for row in rows if row.dataset == table.datasets[0]]
        for name in datasets:
            if name not in in_paper:
                rows += [_for_dataset(row, name) for row in pattern]
    elif datasets:
        only = (in_paper or datasets)[0]
        rows = [replace(row, dataset=only) for row in rows]
    return rows


def _for_dataset(row: TablePart, name: str) -> TablePart:
    return replace(row, dataset=name, label=row.label.replace(row.dataset, name, 1))


def _run_on(dataset: str, by_name: Mapping[str, RunSummary]) -> RunSummary | None:
    for name, run in by_name.items():
        if is_covered(name, dataset):
            return run
    return None


def value_of(run: RunSummary | None, cell: TablePart) -> float | None:
    """The figure that a cell names; in percent where the paper prints percent. None if the run has none, and for a
    share that is saved where rows of one of both failed."""
    if run is None:
        return None

    by_name = {system.name: system for system in run.systems}
    values = [_value(by_name.get(name), cell) for name in cell.systems]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None

    value = math.fsum(known) / len(known)
    if cell.against:
        if rows_of(run, cell):
            return None  # rows failed: the two are means of other questions
        other = _value(by_name.get(cell.against), cell)
        return None if not other else 100 * (1 - value / other)
    return 100 * value if cell.percent else value


def rows_of(run: RunSummary | None, cell: TablePart) -> tuple[int, int] | None:
    """Of how many rows the figure of a cell is, and of how many it should be; None where none failed, lacks or
    has no score."""
    by_name = {system.name: system for system in run.systems} if run else {}
    systems = [by_name[name] for name in (*cell.systems, cell.against) if name in by_name]
    # A system of QA search is asked several wordings of a question, or those that another one got wrong.
    counts_questions = run is not None and run.table.get("kind") != "qa_search"
    not_asked = sum(run.missing.get(system.name, 0) for system in systems) if run and counts_questions else 0
    asked = sum(system.n for system in systems) + not_asked
    failed = not_asked + sum(_without_score(system, cell.metric) for system in systems)
    return (asked - failed, asked) if failed else None


def _without_score(system: SystemSummary, metric: str) -> int:
    score = system.cells.get(metric)
    return system.n_failed if score is None else score.n_failed + score.n_undefined


def _smaller_size(run: RunSummary | None, cells: Sequence[TablePart]) -> str:
    """What there was less of than a system of the cells asks for: prepared answers in its FAQ cache or in a block of
    it, or passages in the corpus. Empty if there was enough, or a run does not say."""
    if run is None:
        return ""
    systems = [run.table.get("systems", {}).get(name, {}) for cell in cells for name in cell.systems]
    prepared, passages = (run.header.extra.get(name, math.inf) for name in ("prepared_answers", "passages"))
    if any(prepared < max(system.get("entries", 0), system.get("block", 0)) for system in systems):
        return f"{prepared} prepared"
    if any(passages < _passages_asked_for(system) for system in systems):
        return counted(passages, "passage")
    return ""


def _passages_asked_for(system: Mapping[str, Any]) -> int:
    asked_for = system.get("about", {}).get("passages") or system.get("k", 0)
    return int(asked_for) if str(asked_for).isdecimal() else 0


def listed(runs: Path, papers: Sequence[str] = ()) -> list[tuple[PaperTable, Path | None]]:
    """All tables, or those of the papers whose names begin so, each with the newest report of it
    under `runs`."""
    newest_report: dict[str, Path] = {}
    for file in sorted(runs.glob(f"*/*/{HEADER_FILE}"), key=_age):
        header, report = json.loads(file.read_text("utf-8")), file.parents[1] / "report.html"
        if report.is_file():
            made = _made_by(header["name"], header["extra"].get("table", {}))
            newest_report |= {table.id: report for table in made}

    prefixes = tuple(name.lower().replace("_", " ").replace("-", " ") for name in papers)
    tables = []
    for table in papers_tables().values():
        if not prefixes or table.paper.lower().replace("-", " ").startswith(prefixes):
            tables.append((table, newest_report.get(table.id)))
    return tables


def _age(file: Path) -> tuple[int, str]:
    return file.stat().st_mtime_ns, str(file)


def shown(value: float | None) -> str:
    """Three significant digits, or all before the point."""
    if value is None:
        return "-"
    if abs(value) >= 1000 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def _made_by(definition: str, table: Mapping[str, Any]) -> list[PaperTable]:
    """The papers' tables that a run stands for; one with settings of its own needs a run that was made for it."""
    only = table.get("papers", ())
    return [
        each
        for each in papers_tables().values()
        if each.definition == definition and (each.id in only if only else not (each.settings or each.options))
    ]


def _value(system: SystemSummary | None, cell: TablePart) -> float | None:
    if system is None:
        return None
    score = system.cells.get(cell.metric)
    if score is None:
        return RESOURCES[cell.metric](system) if cell.metric in RESOURCES else None
    if cell.statistic != "mean":
        return score.quartiles[("q1", "q3").index(cell.statistic)] if score.quartiles else None
    return score.interval.estimate if score.interval else None
