"""Says of every table of the papers what it needs, which command runs it, and what came of it; ours beside theirs."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.papers import PaperTable, TablePart, papers_tables
from kraq_dspy.eval.tables.summary import RunSummary, SystemSummary, TableSummary
from kraq_dspy.eval.tables.table import is_covered

FIGURES = "figures.json"
"""What a run leaves beside its report: the papers' tables that it has figures of."""


Resource = Callable[[SystemSummary], float | None]


RESOURCES: Mapping[str, Resource] = {
    "latency": lambda system: system.latency.modelled if system.latency else None,
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
        if table.definition == name and (table.id in only if only else not (table.settings or table.options))
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


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a paper, and the figures of the run that was found for it, None where there is none."""

    table: PaperTable
    ours: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        table = self.table
        return {
            "id": table.id, "paper": table.paper, "number": table.number, "shows": table.shows,
            "needs": table.needs, "datasets": list(table.datasets), "command": table.command,
            "report": self.ours["report"] if self.ours else None,
        }  # fmt: skip


def write_figures(figures: Iterable[Figures], folder: Path, made_with: Mapping[str, Any]) -> Path:
    """`figures.json` of a run, from which the page of the papers' tables is made."""
    tables = {
        each.table.id: {
            "rows": list(each.rows),
            "columns": [column.label for column in each.table.columns],
            "ours": [[None if value is None else round(value, 4) for value in row] for row in each.ours],
            "datasets": list(each.datasets),
            "models": dict(each.models),
            "notes": list(each.notes),
        }
        for each in figures
    }
    file = folder / FIGURES
    with replaced(file) as draft:
        draft.write_text(json.dumps({"made_with": made_with, "tables": tables}, indent=1) + "\n", "utf-8")
    return file


def listed(runs: Path, papers: Sequence[str] = ()) -> list[TableStatus]:
    """All tables, or those of the papers whose names begin so, with what is found under `runs`; the newest counts."""
    latest_runs: dict[str, Mapping[str, Any]] = {}
    for file in sorted(runs.glob(f"*/{FIGURES}"), key=lambda path: (path.stat().st_mtime_ns, str(path))):
        try:
            content = json.loads(file.read_text("utf-8"))
            for table_id, figures in content["tables"].items():
                latest_runs[table_id] = {
                    **figures,
                    "made_with": content["made_with"],
                    "report": str(file.parent / "report.html"),
                }
        except (ValueError, KeyError, TypeError) as error:
            raise EvaluationError(f"{str(file)!r} holds no figures of a run: {error}.") from error
    prefixes = [name.lower().replace("_", " ").replace("-", " ") for name in papers]
    return [
        TableStatus(table, latest_runs.get(table.id))
        for table in papers_tables().values()
        if not prefixes or any(table.paper.lower().replace("-", " ").startswith(name) for name in prefixes)
    ]


def page(tables: Sequence[TableStatus]) -> str:
    """The page "paper's table, command, ours, theirs", as Markdown; made of the runs' figures alone."""
    asked = [each.ours["made_with"].get("asked", FEW) for each in tables if each.ours]
    parts = [INTRODUCTION, *([TRIALS] if asked and max(asked) < FEW else []), *_index(tables)]
    for each in tables:
        if each.ours is not None:
            parts.append("\n".join(_section(each, each.ours)))
    return "\n\n".join(parts) + "\n"


FEW = 100
"""Questions below which a figure is called a trial."""

INTRODUCTION = """# The papers' tables, ours beside theirs

Written by `kraq eval list --markdown` from the figures that runs leave beside their reports; do not edit by hand. Every
table and figure of the five papers with measured results is listed; those with a link were run. A cell reads
*ours (theirs)*, theirs as printed. Why they differ stands below each table."""


TRIALS = (
    f"**All runs here are trials of fewer than {FEW} questions. They show that a command works, and nothing about a "
    "paper's claim.**"
)


def _index(tables: Sequence[TableStatus]) -> Iterator[str]:
    lines = ["| table | shows | command | needs | run |", "|---|---|---|---|---|"]
    for each in tables:
        table = each.table
        number = f"{table.paper}, {table.number}"
        place = f"[{table.id}](#{table.id.replace('.', '')})" if each.ours else "no"
        command = f"`{table.command}`" if table.command else "none"
        lines.append(f"| {number} | {table.shows} | {command} | {table.needs} | {place} |")
    yield "\n".join(lines)


def _section(each: TableStatus, ours: Mapping[str, Any]) -> Iterator[str]:
    table = each.table
    yield f"## {table.id}"
    yield ""
    yield f"{table.paper}, {table.number}: {table.shows}."
    yield ""
    yield "| | " + " | ".join(_made_by(label, ours["models"]) for label in ours["columns"]) + " |"
    yield "|---|" + "---|" * len(ours["columns"])
    for place, (label, values) in enumerate(zip(ours["rows"], ours["ours"], strict=True)):
        theirs: Sequence[float | None] = table.theirs[place] if place < len(table.theirs) else ()
        cells = [_cell(value, theirs[column] if column < len(theirs) else None) for column, value in enumerate(values)]
        yield f"| {_made_by(label, ours['models'])} | " + " | ".join(cells) + " |"
    yield ""
    yield f"Why they differ: {differences(each.table, ours)}"


OF_THE_GENERATOR = ("KRAQ", "Fine-tuned KRAQ")
"""Labels by which the papers mean questions of their tuned generator."""


def _made_by(label: str, models: Mapping[str, str]) -> str:
    """The label, with what asked the questions here where the paper's is a tuned generator."""
    generator = models.get("generator", "")
    if label not in OF_THE_GENERATOR or not generator:
        return label
    return f"{label} (here: {'embedded templates' if generator == 'embedded' else generator})"


def _cell(ours: float | None, theirs: float | None) -> str:
    return f"{shown(ours)} ({shown(theirs)})" if theirs is not None else shown(ours)


def shown(value: float | None) -> str:
    """Three significant digits, or all before the point."""
    if value is None:
        return "-"
    return (
        f"{value:,.0f}"
        if abs(value) >= 1000 or value == round(value)
        else f"{value:.3g}"
        if abs(value) < 100
        else f"{value:.1f}"
    )


def differences(table: PaperTable, ours: Mapping[str, Any]) -> str:
    """What of the run was not the paper's, told from the run's own account."""
    models = ours["models"]
    reasons = []
    answering = models.get("answerer", "")
    if answering == "embedded":
        reasons.append(
            "the embedded model, which is no language model, answered, asked and judged; its log-probabilities are "
            "invented, so scores of drafts mean nothing"
            if table.definition in ("speculative", "drafter")
            else "the embedded model, which is no language model, answered, asked and judged"
        )
    else:
        reasons.append(f"the model was {answering}")
    if ours["datasets"] and set(ours["datasets"]) != set(table.datasets):
        reasons.append(f"the data were {', '.join(ours['datasets'])}")
    reasons.append(f"the encoder was {models.get('encoder', 'another')}")
    if "bertscore" in models:
        reasons.append(f"BERTScore by {models['bertscore']}")
    n_asked = ours["made_with"].get("asked")
    if n_asked:
        few = ", too few to say more than that the command works" if n_asked < FEW else ""
        documents = ours["made_with"].get("documents")
        over = f" over {documents:,} documents" if documents else ""
        reasons.append(f"{n_asked} questions a data set{over}{few}")
    if "paper" in ours["made_with"]:
        reasons.append("settings as in the paper (`--paper`)" if ours["made_with"]["paper"] else "without `--paper`")
    settings = ours["made_with"].get("settings")
    reasons.append(
        ", ".join(f"{name} = {value}" for name, value in settings.items())
        if settings
        else "the run did not keep whether `--paper` was set"
    )
    text = "; ".join(reasons)
    return f"{text}. {' '.join(ours['notes'])}".strip() if ours["notes"] else f"{text}."
