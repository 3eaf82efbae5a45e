"""Puts the figures of runs into the rows and columns of the papers' tables, and finds the reports of each table."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraq_dspy.errors import counted
from kraq_dspy.eval.latency import TOTAL, parallel_seconds
from kraq_dspy.eval.reports.grids import Grid
from kraq_dspy.eval.reports.summary import RunSummary, SystemSummary, TableSummary
from kraq_dspy.eval.rows import HEADER_FILE
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
FAILED = (
    "A figure with [n of N] is of n rows, since the others failed, were not asked or have no gold answer to be scored "
    "by: it does not compare with its neighbors. The table of differences compares the questions that both have; "
    "--retry-failed asks the others again."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Our figure for a cell of a paper's table; None if nothing was run.

    `scored` says of how many rows it is, and of how many it should be; None where they are as many.
    """

    value: float | None = None
    scored: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FigureRow:
    """Our figures for a row of a paper's table, by column.

    `dataset` is the data set that was run for it, "" if none was. `smaller` says what there was less of than the row's
    systems ask for ("4 prepared", "3 passages").
    """

    label: str
    figures: tuple[Figure, ...]
    dataset: str = ""
    smaller: str = ""


def paper_grids(summary: TableSummary) -> list[Grid]:
    """The tables of the papers that the runs have figures of, with the papers' rows and columns: ours (theirs)."""
    if not summary.runs:
        return []
    notes = dict.fromkeys(note for run in summary.runs for note in run.header.extra.get("notes", ()))
    grids = []
    for table in _made_by(summary.runs[0].header.name, summary.runs[0].table):
        rows = lay_out(table, summary.runs)
        if any(figure.value is not None for row in rows for figure in row.figures):
            grids.append(_grid(table, rows, list(notes)))
    return grids


def _grid(table: PaperTable, rows: Sequence[FigureRow], notes: Sequence[str]) -> Grid:
    """The title has the true size of an FAQ cache or a corpus that is smaller than the paper's. A figure is marked
    where rows of it failed ("47.3 [3 of 4]"); behind it, in brackets, is the printed one."""
    cells = []
    for number, row in enumerate(rows):
        theirs = table.theirs[number] if number < len(table.theirs) else ()
        printed = [f" ({shown(value)})" for value in theirs] or [""] * len(row.figures)
        label = f"{row.label} ({row.smaller})" if row.smaller else row.label
        texts = []
        for figure, their in zip(row.figures, printed, strict=True):
            mark = f" [{figure.scored[0]} of {figure.scored[1]}]" if figure.scored else ""
            texts.append(f"{shown(figure.value)}{mark}{their}")
        cells.append((label, *texts))

    sizes = sorted({row.smaller for row in rows} - {""})
    here = f" (here of {', '.join(sizes)})" if sizes else ""
    datasets = dict.fromkeys(row.dataset for row in rows if row.dataset)
    failed = [FAILED] if any(figure.scored for row in rows for figure in row.figures) else []
    return Grid(
        f"{table.paper}, {table.number}: {table.shows}{here}",
        ("", *(column.label for column in table.columns)),
        tuple(cells),
        note=" ".join((f"{table.id}, ours (theirs), on {', '.join(datasets)}.", *failed, *notes)),
    )


def lay_out(table: PaperTable, runs: Sequence[RunSummary]) -> list[FigureRow]:
    """Rows of a data set are taken from the run of it, or of a part of it ("hotpotqa-mini"); data
    sets that the paper did not use come below, in rows of their own."""
    rows = []
    for row in _rows_for(table, [run.header.dataset for run in runs]):
        cells = [row.with_other(column) for column in table.columns]
        run = next((run for run in runs if is_covered(run.header.dataset, row.dataset)), None)
        if run is None:
            rows.append(FigureRow(row.label, (Figure(),) * len(cells)))
        else:
            figures = tuple(figure_of(run, cell) for cell in cells)
            rows.append(FigureRow(row.label, figures, run.header.dataset, _smaller_size(run, cells)))
    return rows


def _rows_for(table: PaperTable, datasets: Sequence[str]) -> list[TablePart]:
    """The table's rows, and rows like them for the data sets that the paper did not use."""
    of_paper = [name for name in datasets if any(is_covered(name, known) for known in table.datasets)]
    if any(row.dataset for row in table.rows):
        pattern = [row for row in table.rows if row.dataset == table.datasets[0]]
        others = [
            replace(row, dataset=name, label=row.label.replace(row.dataset, name, 1))
            for name in datasets
            if name not in of_paper
            for row in pattern
        ]
        return [*table.rows, *others]
    return [replace(row, dataset=(of_paper or datasets)[0]) for row in table.rows]


def figure_of(run: RunSummary, cell: TablePart) -> Figure:
    """The figure that a cell names; in percent where the paper prints percent. Its value is None if the run has none,
    and for a share that is saved where rows of one of both failed: the two are means of other questions."""
    by_name = {system.name: system for system in run.systems}
    systems = [by_name[name] for name in (*cell.systems, cell.against) if name in by_name]
    # A system of QA search is asked several wordings of a question, or those that another one got wrong.
    missing = {} if run.table.get("kind") == "qa_search" else run.missing
    asked = failed = 0
    for system in systems:
        score, not_asked = system.cells.get(cell.metric), missing.get(system.name, 0)
        asked += system.n + not_asked
        failed += not_asked + (system.n_failed if score is None else score.n_failed + score.n_undefined)
    scored = (asked - failed, asked) if failed else None

    values = [_value(by_name.get(name), cell) for name in cell.systems]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Figure(None, scored)
    value = math.fsum(known) / len(known)
    if cell.against:
        other = _value(by_name.get(cell.against), cell)
        return Figure(100 * (1 - value / other) if other and not scored else None, scored)
    return Figure(100 * value if cell.percent else value, scored)


def _value(system: SystemSummary | None, cell: TablePart) -> float | None:
    if system is None:
        return None
    score = system.cells.get(cell.metric)
    if score is None:
        return RESOURCES[cell.metric](system) if cell.metric in RESOURCES else None
    if cell.statistic != "mean":
        return score.quartiles[("q1", "q3").index(cell.statistic)] if score.quartiles else None
    return score.interval.estimate if score.interval else None


def _smaller_size(run: RunSummary, cells: Sequence[TablePart]) -> str:
    """What there was less of than a system of the cells asks for: prepared answers in its FAQ cache or in a block of
    it, or passages in the corpus. Empty if there was enough, or a run does not say."""
    systems = [run.table.get("systems", {}).get(name, {}) for cell in cells for name in cell.systems]
    prepared, passages = (run.header.extra.get(name, math.inf) for name in ("prepared_answers", "passages"))
    if any(prepared < max(system.get("entries", 0), system.get("block", 0)) for system in systems):
        return f"{prepared} prepared"
    asked_for = [str(system.get("about", {}).get("passages") or system.get("k", 0)) for system in systems]
    if any(count.isdecimal() and passages < int(count) for count in asked_for):
        return counted(passages, "passage")
    return ""


def listed(runs: Path, papers: Sequence[str] = ()) -> list[tuple[PaperTable, Path | None]]:
    """All tables, or those of the papers whose names begin so, each with the newest report of it
    under `runs`."""
    newest_report: dict[str, Path] = {}
    for file in sorted(runs.glob(f"*/*/{HEADER_FILE}"), key=lambda file: (file.stat().st_mtime_ns, str(file))):
        header, report = json.loads(file.read_text("utf-8")), file.parents[1] / "report.html"
        if report.is_file():
            made = _made_by(header["name"], header["extra"].get("table", {}))
            newest_report |= {table.id: report for table in made}

    prefixes = tuple(name.lower().replace("_", " ").replace("-", " ") for name in papers)
    return [
        (table, newest_report.get(table.id))
        for table in papers_tables().values()
        if not prefixes or table.paper.lower().replace("-", " ").startswith(prefixes)
    ]


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
