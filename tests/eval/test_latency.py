import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.latency import Timings, parallel_model, stage_times, wall_time

QUERIES: list[Timings] = [
    {"retrieve": 0.1, "draft": [1.0, 3.0, 2.0], "verify": [0.5, 0.4], "total": 7.0},
    {"retrieve": 0.3, "draft": [4.0, 1.0, 1.0], "verify": [0.2, 0.3], "total": 6.5},
    {"retrieve": 0.2, "draft": [2.0, 2.0, 2.0], "verify": [0.9, 0.1], "total": 7.2},
]


def test_the_papers_model_adds_the_medians_of_the_slowest_branches() -> None:
    modelled = parallel_model(QUERIES)
    assert modelled.stages == pytest.approx({"retrieve": 0.2, "draft and verify": 3.5})  # of 3.5, 4.3 and 2.9
    assert modelled.total == pytest.approx(3.7)
    assert modelled.n == 3


def test_what_most_queries_skip_is_not_lost() -> None:
    """Eight medians would leave the embedding out: it is 0 for two of three queries."""
    times: list[Timings] = [
        {"retrieve": 0.1, "proxy": 0.0, "lookup": 0.1, "embed": 0.9, "cluster": 0.1, "select": 0.0},
        {"retrieve": 0.1, "proxy": 0.1, "lookup": 0.3, "embed": 0.0, "cluster": 0.1, "select": 0.0},
        {"retrieve": 0.1, "proxy": 0.1, "lookup": 0.9, "embed": 0.0, "cluster": 0.1, "select": 0.0},
    ]
    modelled = parallel_model(times)
    assert list(modelled.stages) == ["retrieve", "embed and cluster", "select"]
    assert modelled.stages["embed and cluster"] == pytest.approx(1.1)
    assert modelled.total == pytest.approx(1.2)


def test_wall_time_is_what_was_measured() -> None:
    measured = wall_time(QUERIES)
    assert (measured.n, measured.p50) == (3, 7.0)
    assert measured.p90 == pytest.approx(7.0 + 0.8 * 0.2)  # between the two slowest


def test_stages_are_reported_in_order_without_the_total() -> None:
    stages = stage_times(QUERIES)
    assert list(stages) == ["retrieve", "draft", "verify"]
    assert stages["draft"].p50 == 3.0


def test_one_query_is_its_own_percentile() -> None:
    assert wall_time([{"total": 2.0}]).p99 == 2.0


def test_the_row_at_fault_is_named() -> None:
    with pytest.raises(EvaluationError, match="Row 1 has no time for 'draft'; a stage that was skipped takes"):
        parallel_model([{"draft": 1.0}, {"other": 1.0}])
    with pytest.raises(EvaluationError, match="Row 1: the stage 'draft' took nan"):
        stage_times([{"draft": 1.0}, {"draft": [float("nan"), 2.0]}])
    with pytest.raises(EvaluationError, match="Row 0: the stage 'draft' took -1"):
        stage_times([{"draft": -1}])
    with pytest.raises(EvaluationError, match="empty list of branches"):
        parallel_model([{"draft": []}])
    with pytest.raises(EvaluationError, match="Row 0 has no time for 'total'"):
        wall_time([{"draft": 1.0}])
    with pytest.raises(EvaluationError, match="no timings"):
        wall_time([])
    with pytest.raises(EvaluationError, match="no timings of stages"):
        parallel_model([{"total": 1.0}])
