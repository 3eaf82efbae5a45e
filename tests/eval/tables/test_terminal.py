"""The tables in a terminal, wide and narrow."""

from io import StringIO

from rich.console import Console

from kraq_dspy.eval.grids import Grid
from kraq_dspy.eval.tables.terminal import print_grid

GRID = Grid(
    "Scores",
    ("system", "alpha", "beta", "gamma"),
    (("one", "0.111 [0.000, 0.222]", "0.333 [0.300, 0.350]", "0.444 [0.400, 0.500]"),),
    frozenset({(0, 3)}),
    "A note.",
)


def shown(width: int) -> str:
    out = StringIO()
    print_grid(GRID, Console(file=out, width=width, color_system=None))
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
