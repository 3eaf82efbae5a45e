"""The figures: a line for every system, labels apart, a difference coloured only where its p-value bears it."""

import re

import pytest

from kraq_dspy.eval.latency import Percentiles
from kraq_dspy.eval.rows import ResultRow, RunHeader
from kraq_dspy.eval.statistics import Interval
from kraq_dspy.eval.tables.plots import COLOURS, GREY, plots
from kraq_dspy.eval.tables.summary import Cell, Latency, RunSummary, SystemSummary

METRICS = ("recall@5", "recall@10")
BLUE = COLOURS[0]


def interval(estimate: float, low: float, high: float) -> Interval:
    return Interval(estimate, low, high, confidence=0.95, n=5, resamples=10, seed=0)


def system(name: str, difference: Interval | None = None, p: float | None = None, ms: float = 10.0) -> SystemSummary:
    score = interval(0.5, 0.4, 0.6)
    cells = {metric: Cell(metric, score, 0, 0, difference=difference, p_adjusted=p) for metric in METRICS}
    spread = Percentiles(5, ms / 1000, ms / 1000, ms / 1000, mean=ms / 1000)
    latency = Latency(None, {"k=5": spread, "k=10": spread}, None)
    return SystemSummary(name, {}, 5, 0, {}, cells, latency, None)


def run(*systems: SystemSummary) -> RunSummary:
    table = {
        "kind": "retrievers", "baseline": "plain", "metrics": METRICS, "budgets": [5, 10],
        "systems": {each.name: {} for each in systems},
    }  # fmt: skip
    header = RunHeader("t", "set", {}, {"seed": 0}, {}, extra={"table": table, "asked": 5})
    rows = tuple(ResultRow("q1", each.name) for each in systems)
    return RunSummary(header, "plain", systems, {}, rows)


def drawn(name: str, *systems: SystemSummary) -> str:
    return next(plot.svg for plot in plots(run(*systems), "p") if plot.name == name).lower()


@pytest.mark.parametrize(
    ("difference", "p", "is_coloured"),
    [
        (interval(0.1, 0.05, 0.15), 0.01, True),
        (interval(0.1, 0.05, 0.15), 1.0, False),
        (interval(0.1, -0.05, 0.25), 0.01, False),
        (interval(0.1, 0.05, 0.15), None, True),
    ],
)
def test_a_difference_is_coloured_where_interval_and_adjusted_p_value_bear_it(
    difference: Interval, p: float | None, is_coloured: bool
) -> None:
    svg = drawn("differences", system("plain"), system("other", difference, p))
    assert (BLUE.lower() in svg) is is_coloured
    assert (GREY.lower() in svg) is not is_coloured


def test_every_system_has_its_line_and_no_two_look_alike() -> None:
    systems = [system("plain"), *(system(f"system {place}") for place in range(11))]
    svg = drawn("budget", *systems)
    assert all(f">{each.name}<" in svg for each in systems)
    looks = set(re.findall(r"stroke-dasharray: ([\d., ]+)", svg))
    assert len(looks) >= 2  # eight colours, then another line
    assert len({colour for colour in COLOURS if colour.lower() in svg}) == len(COLOURS)
