"""Says of every table of the papers what it needs, which command runs it, and what came of it; ours beside theirs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.papers.catalogue import PaperTable, papers_tables
from kraq_dspy.eval.papers.layout import Figures

FIGURES = "figures.json"
"""What a run leaves beside its report: the papers' tables that it has figures of."""


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
                    "report": str(file.parent / "report.md"),
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
        lines.append(f"| {number} | {table.shows} | `{table.command}` | {table.needs} | {place} |")
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
    settings = ours["made_with"].get("settings")
    reasons.append(
        ", ".join(f"{name} = {value}" for name, value in settings.items())
        if settings
        else "the run did not keep whether `--paper` was set"
    )
    text = "; ".join(reasons)
    return f"{text}. {' '.join(ours['notes'])}".strip() if ours["notes"] else f"{text}."
