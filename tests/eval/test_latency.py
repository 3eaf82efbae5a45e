"""Tests that the papers' model of latency adds up what runs one after the other."""

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.latency import Timings, parallel_seconds, stage_times

QUERIES: list[Timings] = [
    {"retrieve": 0.1, "draft": [1.0, 3.0, 2.0], "verify": [0.5, 0.4], "total": 7.0},
    {"retrieve": 0.3, "draft": [4.0, 1.0, 1.0], "verify": [0.2, 0.3], "total": 6.5},
    {"retrieve": 0.2, "draft": [2.0, 2.0, 2.0], "verify": [0.9, 0.1], "total": 7.2},
]


def test_the_papers_model_adds_the_medians_of_the_slowest_branches() -> None:
    stages = stage_times(QUERIES)
    assert stages["retrieve"].p50 == 0.2
    assert stages["draft and verify"].p50 == pytest.approx(3.5)  # of 3.5, 4.3 and 2.9
    assert parallel_seconds(stages) == pytest.approx(3.7)


def test_what_most_queries_skip_is_not_lost() -> None:
    """Eight medians would leave the embedding out: it is 0 for two of three queries."""
    times: list[Timings] = [
        {"retrieve": 0.1, "proxy": 0.0, "lookup": 0.1, "embed": 0.9, "cluster": 0.1, "select": 0.0},
        {"retrieve": 0.1, "proxy": 0.1, "lookup": 0.3, "embed": 0.0, "cluster": 0.1, "select": 0.0},
        {"retrieve": 0.1, "proxy": 0.1, "lookup": 0.9, "embed": 0.0, "cluster": 0.1, "select": 0.0},
    ]
    stages = stage_times(times)
    assert list(stages) == ["retrieve", "embed and cluster", "select"]
    assert stages["embed and cluster"].p50 == pytest.approx(1.1)
    assert stages["embed and cluster"].mean == pytest.approx((1.1 + 0.5 + 1.1) / 3)
    assert parallel_seconds(stages) == pytest.approx(1.2)


def test_wall_time_is_what_was_measured() -> None:
    measured = stage_times(QUERIES)["total"]
    assert (measured.n, measured.p50) == (3, 7.0)
    assert measured.p90 == pytest.approx(7.0 + 0.8 * 0.2)  # between the two slowest


def test_one_query_is_its_own_percentile() -> None:
    assert stage_times([{"total": 2.0}])["total"].p99 == 2.0


def test_the_row_at_fault_is_named() -> None:
    with pytest.raises(EvaluationError, match="Row 1 has no time for 'draft'; a stage that was skipped takes"):
        stage_times([{"draft": 1.0}, {"other": 1.0}])
    with pytest.raises(EvaluationError, match=r"Row 1: the stage 'draft' took \[nan"):
        stage_times([{"draft": 1.0}, {"draft": [float("nan"), 2.0]}])
    with pytest.raises(EvaluationError, match="Row 0: the stage 'draft' took -1"):
        stage_times([{"draft": -1}])
    with pytest.raises(EvaluationError, match="Row 0: the stage 'draft' took "):
        stage_times([{"draft": []}])
