"""Shows a run as tables in the terminal."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kraq_dspy.eval.reports.grids import ABOUT, WORDS, Grid, Strong, facts, failed_questions, grids, setup_lines
from kraq_dspy.eval.reports.summary import RunSummary, TableSummary
from kraq_dspy.eval.rows import clipped

FAILED = 5
"""Questions with the lowest scores that are shown, for each data set."""
NARROW = 100
"""Columns of a terminal below which metrics are rows."""


def print_summary(
    summary: TableSummary, console: Console, *, in_front: Sequence[Grid] = (), failed: int = FAILED
) -> None:
    """Print the runs of a table, behind the grids `in_front`. Text of documents and models is never read as markup."""
    console.print(Text(_plain(summary.title), style="bold"))
    _print_lines(setup_lines(summary), console)
    for grid in in_front:
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
        console.print(Text(f"  {row[1]} {row[0]}: {clipped(_plain(cells['question']), 2 * console.width)}"))
        for name in ("gold", "answer", "evidence"):
            if cells[name]:
                line = Text(f"{name}: {clipped(_plain(cells[name]), 2 * console.width)}", style="dim")
                console.print(Padding(line, (0, 0, 0, 6), expand=False))
    console.print(Text(worst.note, style="dim"))


def _print_lines(lines: Mapping[str, str], console: Console) -> None:
    for name, text in lines.items():
        console.print(Text(f"  {name}: ", style="dim") + Text(_plain(text)))


def print_grid(grid: Grid, console: Console) -> None:
    """The grid as a table that is no wider than the console: cells are folded.

    In a narrow console, or if its columns do not fit, the metrics of systems are rows.
    """
    if _can_be_turned(grid) and _reads_better_turned(grid, console.width):
        grid = turned(grid)
    table = Table(title=grid.title or None, title_justify="left", title_style="bold")
    for column, heading in enumerate(grid.headings):
        is_words = column == 0 or heading in WORDS or heading in ABOUT
        table.add_column(Text(_plain(heading)), justify="left" if is_words else "right", overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(_plain(cell), style="bold" if isinstance(cell, Strong) else "") for cell in row))
    console.print(table)

    if grid.note:
        console.print(Text(grid.note, style="dim"))


def turned(grid: Grid) -> Grid:
    """The grid with its columns as rows.

    >>> turned(Grid("Scores", ("system", "recall@5", "n"), (("dense", "0.500", "20"),))).rows
    (('recall@5', '0.500'), ('n', '20'))
    """
    headings = ("", *(row[0] for row in grid.rows))
    rows = tuple(
        (heading, *(row[column] for row in grid.rows)) for column, heading in enumerate(grid.headings) if column
    )
    return Grid(grid.title, headings, rows, grid.note)


LONGEST_FIGURE = 60  # characters; a longer cell is running text


def _can_be_turned(grid: Grid) -> bool:
    """Whether the grid has figures of systems."""
    longest = max((len(cell) for row in grid.rows for cell in row[1:]), default=0)
    return grid.headings[:1] == ("system",) and "reason" not in grid.headings and longest <= LONGEST_FIGURE


BORDER = 3  # what a column takes besides its text: two spaces and a line


def _reads_better_turned(grid: Grid, available: int) -> bool:
    return available < NARROW or _full_width(turned(grid)) <= available < _full_width(grid)


def _full_width(grid: Grid) -> int:
    """How wide the table is if no cell is wrapped."""
    columns = zip(grid.headings, *grid.rows, strict=True)
    return sum(max(map(cell_len, texts)) + BORDER for texts in columns) + 1


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
