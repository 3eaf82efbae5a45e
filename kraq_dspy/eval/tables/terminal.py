"""Shows the summary as tables in the terminal, and the same as one HTML page."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kraq_dspy._internal.files import replaced
from kraq_dspy.eval.grids import ABOUT, WORDS, Grid, facts, failed_questions, grids, paper_grids, setup_lines
from kraq_dspy.eval.summary import RunSummary, TableSummary

FAILED, FAILED_ON_PAGE = 5, 100
"""Questions that failed, of each data set."""
PAGE_WIDTH = 160  # characters


def write_report(summary: TableSummary, folder: Path) -> list[Path]:
    """`report.html` in the folder."""
    return [write_page(lambda console: print_summary(summary, console, failed=FAILED_ON_PAGE), folder / "report.html")]


def write_page(show: Callable[[Console], None], file: Path) -> Path:
    """What `show` prints, as one HTML page."""
    # Rich escapes every text, and its page has no script and loads nothing.
    console = Console(file=io.StringIO(), record=True, width=PAGE_WIDTH, highlight=False)
    show(console)
    with replaced(file) as draft:
        draft.write_text(console.export_html(), "utf-8")
    return file


def print_summary(summary: TableSummary, console: Console, *, failed: int = FAILED) -> None:
    """Text of documents and models is never read as markup."""
    console.print(Text(_plain(summary.title), style="bold"))
    _print_lines(setup_lines(summary), console)
    for grid in paper_grids(summary):
        print_grid(grid, console)
    for run in summary.runs:
        console.print(Text(f"\n{_plain(run.header.dataset)}", style="bold cyan"))
        _print_lines(facts(run), console)
        print_run(run, console, failed=failed)


def print_run(run: RunSummary, console: Console, *, brief: bool = False, failed: int = FAILED) -> None:
    """The figures of one data set, and the questions that failed; `brief` leaves out what they took."""
    for grid in grids(run, brief=brief):
        print_grid(grid, console)
    worst = failed_questions(run, failed)
    if worst is None:
        return
    console.print(Text(worst.title, style="bold"))
    for row in worst.rows:
        cells = dict(zip(worst.headings, row, strict=True))
        console.print(Text(f"  {row[1]} {row[0]}: {_shortened(cells['question'], 2 * console.width)}"))
        for name in ("gold", "answer", "evidence"):
            if cells[name]:
                console.print(Text(f"      {name}: {_shortened(cells[name], 2 * console.width)}", style="dim"))
    console.print(Text(worst.note, style="dim"))


def _print_lines(lines: Mapping[str, str], console: Console) -> None:
    for name, text in lines.items():
        console.print(Text(f"  {name}: ", style="dim") + Text(_plain(text)))


def print_grid(grid: Grid, console: Console) -> None:
    table = Table(title=grid.title or None, title_justify="left", title_style="bold")
    for column, heading in enumerate(grid.headings):
        words = column == 0 or heading in WORDS or heading in ABOUT
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    for place, row in enumerate(grid.rows):
        cells = [
            Text(_plain(cell), style="bold" if (place, column) in grid.strong else "")
            for column, cell in enumerate(row)
        ]
        table.add_row(*cells)
    console.print(table)
    if grid.note:
        console.print(Text(grid.note, style="dim"))


def _shortened(text: str, most: int) -> str:
    plain = " ".join(_plain(text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
