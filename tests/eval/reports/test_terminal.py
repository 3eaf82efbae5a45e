"""The tables in a terminal, wide and narrow."""

from io import StringIO

from rich.console import Console

from kraq_dspy.eval.reports.grids import Grid, Strong
from kraq_dspy.eval.reports.terminal import print_grid, turned

GRID = Grid(
    "Scores",
    ("system", "alpha", "beta", "gamma"),
    (("one", "0.111 [0.000, 0.222]", "0.333 [0.300, 0.350]", Strong("0.444 [0.400, 0.500]")),),
    "A note.",
)


def shown(width: int, grid: Grid = GRID) -> str:
    out = StringIO()
    print_grid(grid, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def test_a_narrow_terminal_shows_every_figure_folded() -> None:
    text = shown(60)
    words = text.replace("│", " ").split()
    assert {word for figure in GRID.rows[0][1:] for word in figure.split()} <= set(words)
    assert text.count("A note.") == 1
    assert max(map(len, text.splitlines())) <= 60


def test_markup_and_control_characters_of_names_are_text() -> None:
    out = StringIO()
    odd = Grid("T", ("system", "x"), (("[red]n[/red]\x1b[31m", "1"),))
    print_grid(odd, Console(file=out, width=80, color_system=None))
    assert "[red]n[/red]" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_below_a_hundred_columns_metrics_are_rows() -> None:
    assert "alpha" in next(line for line in shown(120).splitlines() if "system" in line)
    narrow = shown(60).splitlines()
    heading = next(line for line in narrow if "one" in line)
    assert "alpha" not in heading
    assert any(line.split("│")[1].strip() == "alpha" and "0.111" in line for line in narrow if line.count("│") > 1)


def test_metrics_whose_columns_do_not_fit_are_rows_and_no_figure_is_wrapped() -> None:
    figure = "0.111 [0.000, 0.222] n=59 (1 failed)"
    wide = Grid("Scores", ("system", "alpha", "beta", "gamma"), (("one", figure, figure, figure),))
    assert sum(figure in line for line in shown(110, wide).splitlines()) == 3


def test_what_stood_out_stands_out_after_the_turn() -> None:
    cells = [row[1] for row in turned(GRID).rows]
    assert [isinstance(cell, Strong) for cell in cells] == [False, False, True]
    assert cells[2] == GRID.rows[0][3]
