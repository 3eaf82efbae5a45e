"""Shows a summary in three ways: in the terminal, as Markdown, and as one HTML page that needs no network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.eval.papers.layout import figures_of
from kraq_dspy.eval.papers.listing import write_figures
from kraq_dspy.eval.tables.report.markdown import markdown
from kraq_dspy.eval.tables.report.page import page
from kraq_dspy.eval.tables.report.terminal import print_grid, print_run, print_summary
from kraq_dspy.eval.tables.summary import TableSummary

__all__ = ["markdown", "page", "print_grid", "print_run", "print_summary", "write_report"]


def write_report(summary: TableSummary, folder: Path) -> list[Path]:
    """`report.md` and `report.html`, and `figures.json` for the tables of the papers.

    Without matplotlib the page says so in the place of its plots.
    """
    figures = figures_of(summary)
    made_with = {
        **summary.runs[0].header.made_with,
        **{name: max(run.header.extra.get(name, 0) for run in summary.runs) for name in ("asked", "documents")},
        "settings": _telling(summary.runs[0].header.settings),
    }
    write_figures(figures, folder, made_with)
    files = [folder / "report.md", folder / "report.html"]
    for file, text in zip(files, (markdown(summary), page(summary)), strict=True):
        with replaced(file) as draft:
            draft.write_text(text, "utf-8")
    return files


def _telling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the papers set otherwise than a user's defaults, as kraq.toml spells them."""
    return {
        f"[{section}] {name}": settings[section][name]
        for section, name in (("questions", "names"), ("summaries", "context"), ("summaries", "min_entities"))
        if name in settings.get(section, {})
    }
