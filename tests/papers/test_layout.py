"""Tests that figures of runs get into the rows and columns of a paper's table."""

from collections.abc import Mapping, Sequence

import pytest

from kraq_dspy.eval import RunSummary
from kraq_dspy.eval.reports.summary import TableSummary, summarise_run
from kraq_dspy.eval.rows import ResultRow, RunHeader
from kraq_dspy.papers.catalogue import TablePart, papers_tables
from kraq_dspy.papers.listing import FigureRow, figure_of, lay_out, paper_grids, shown


def run(
    scores: Mapping[str, Sequence[float]], *, dataset: str = "hotpotqa", metric: str = "paper_match", seconds: float = 2
) -> RunSummary:
    """A run of the table "combined" whose systems have these scores."""
    header = RunHeader(
        "combined", dataset, {}, {}, {"answerer": "embedded", "encoder": "MiniLM"},
        extra={"table": {"metrics": [metric], "systems": {name: {} for name in scores}}},
    )  # fmt: skip
    rows = [
        ResultRow(str(number), system, metrics={metric: score}, timings={"answer": seconds, "total": seconds})
        for system, values in scores.items()
        for number, score in enumerate(values)
    ]
    return summarise_run(header, rows)


def values_of(row: FigureRow) -> list[float | None]:
    return [figure.value for figure in row.figures]


def test_shares_become_percent_where_the_paper_prints_percent() -> None:
    rows = lay_out(papers_tables()["kraq-2"], [run({"traditional": [1, 0], "combined": [1, 1]})])
    assert [row.label for row in rows] == ["hotpotqa", "triviaqa", "pubhealth", "bioasq"]
    assert values_of(rows[0]) == [50.0, 100.0, None, None]
    assert values_of(rows[1]) == [None, None, None, None]


def test_a_part_of_a_data_set_stands_in_its_row_and_another_one_below() -> None:
    runs = [run({"traditional": [1]}, dataset="hotpotqa-mini"), run({"traditional": [0]}, dataset="musique")]
    rows = lay_out(papers_tables()["kraq-2"], runs)
    assert values_of(rows[0])[0] == 100.0
    assert (rows[-1].label, values_of(rows[-1])[0]) == ("musique", 0.0)
    assert [row.dataset for row in rows] == ["hotpotqa-mini", "", "", "", "musique"]


def test_an_ablation_is_taken_from_the_papers_data_set() -> None:
    rows = lay_out(papers_tables()["kraq-3"], [run({"combined, n=1": [1]}, dataset="musique"), run({"combined": [0]})])
    assert [values_of(row)[0] for row in rows[:2]] == [None, 0.0]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (TablePart("", systems=("a",), metric="paper_match", statistic="q3"), 0.75),
        (TablePart("", systems=("a", "b"), metric="paper_match", statistic="mean"), 0.75),
        (TablePart("", systems=("a", "nobody"), metric="paper_match", statistic="mean"), None),
        (TablePart("", systems=("a",), metric="seconds"), 2.0),
        (TablePart("", systems=("a",), metric="paper_match", statistic="mean", against="b"), 50.0),
    ],
)
def test_a_cell_may_be_a_quartile_a_mean_of_systems_a_time_or_what_is_saved(
    cell: TablePart, value: float | None
) -> None:
    assert figure_of(run({"a": [0, 1], "b": [1, 1]}), cell).value == value


def test_a_table_without_a_figure_is_not_shown() -> None:
    [grid] = paper_grids(TableSummary("", "answers", (run({"traditional": [1]}),)))
    assert grid.note.startswith("kraq-2, ")  # the thesis asks for an explanation: a run of its own


def test_ours_stand_before_the_printed_figures() -> None:
    grid, *_ = paper_grids(TableSummary("", "answers", (run({"traditional": [1, 0], "combined": [1, 1]}),)))
    assert grid.rows[0] == ("hotpotqa", "50 (57)", "100 (58.6)", "- (70.3)", "- (71.3)")


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.4567, "0.457"), (57.04, "57"), (64785, "64,785")])
def test_figures_have_three_digits(value: float | None, text: str) -> None:
    assert shown(value) == text
