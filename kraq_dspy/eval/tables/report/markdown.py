"""Writes the summary as Markdown."""

from kraq_dspy.eval.tables.report.grids import Grid, facts, failed_questions, grids, paper_grids
from kraq_dspy.eval.tables.summary import TableSummary

FAILED = 20
"""Questions that failed, of each data set."""


def markdown(summary: TableSummary) -> str:
    """Ends with a line break."""
    parts = [f"# {_escaped(summary.title)}", *map(_section, paper_grids(summary))]
    for run in summary.runs:
        parts.append(f"## {_escaped(run.header.dataset)}")
        parts.append("\n".join(f"- {name}: {_escaped(text)}" for name, text in facts(run).items()))
        parts += [_section(grid) for grid in grids(run)]
        if (failed := failed_questions(run, FAILED)) is not None:
            parts.append(_section(failed))
    return "\n\n".join(parts) + "\n"


def _section(grid: Grid) -> str:
    lines = [f"### {_escaped(grid.title)}", ""]
    lines.append("| " + " | ".join(_escaped(heading) for heading in grid.headings) + " |")
    lines.append("|" + "---|" * len(grid.headings))
    for place, row in enumerate(grid.rows):
        cells = [
            f"**{_escaped(cell)}**" if (place, column) in grid.strong else _escaped(cell)
            for column, cell in enumerate(row)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", grid.note]) if grid.note else "\n".join(lines)


def _escaped(text: str) -> str:
    """One line in which nothing is markup: cells hold reasons, and those hold text of models."""
    line = " ".join(text.split())
    for mark in "\\`*_|<":
        line = line.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return line
