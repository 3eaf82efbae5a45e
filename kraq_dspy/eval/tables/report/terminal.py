"""Shows the summary as tables in the terminal."""

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kraq_dspy.eval.tables.report.grids import Grid, facts, grids, paper_grids
from kraq_dspy.eval.tables.summary import TableSummary

_WORDS = {"reason"}  # columns of running text, which may wrap


def print_summary(summary: TableSummary, console: Console) -> None:
    """Text of documents and models is never read as markup."""
    console.print(Text(summary.title, style="bold"))
    for grid in paper_grids(summary):
        print_grid(grid, console)
    for run in summary.runs:
        console.print(Text(f"\n{run.header.dataset}", style="bold cyan"))
        for name, text in facts(run).items():
            console.print(Text(f"  {name}: ", style="dim") + Text(_plain(text)))
        for grid in grids(run):
            print_grid(grid, console)


def print_grid(grid: Grid, console: Console) -> None:
    for part in _parts(grid, console.width):
        console.print(_table(part))
    if grid.note:
        console.print(Text(grid.note, style="dim"))


def _parts(grid: Grid, width: int) -> Iterator[Grid]:
    """The grid, cut into groups of columns where the terminal is too narrow for all of them."""
    lengths = [max(map(len, column)) + 3 for column in zip(grid.headings, *grid.rows, strict=True)]
    if _WORDS & set(grid.headings):
        yield grid
        return
    start = 1
    while start < len(lengths):
        end, taken = start + 1, lengths[0] + lengths[start] + 1
        while end < len(lengths) and taken + lengths[end] <= width:
            taken += lengths[end]
            end += 1
        columns = (0, *range(start, end))
        yield replace(
            grid,
            title=grid.title if start == 1 else "",
            headings=tuple(grid.headings[column] for column in columns),
            rows=tuple(tuple(row[column] for column in columns) for row in grid.rows),
            strong=frozenset((row, columns.index(column)) for row, column in grid.strong if column in columns),
        )
        start = end


def _table(grid: Grid) -> Table:
    table = Table(title=grid.title or None, title_justify="left", title_style="bold")
    for column, heading in enumerate(grid.headings):
        words = column == 0 or heading in _WORDS
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading not in _WORDS)
    for place, row in enumerate(grid.rows):
        cells = [
            Text(_plain(cell), style="bold" if (place, column) in grid.strong else "")
            for column, cell in enumerate(row)
        ]
        table.add_row(*cells)
    return table


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
