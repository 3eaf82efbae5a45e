"""Works out the figures of a few rows by hand, and compares the summary with them."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.latency import parallel_seconds
from kraq_dspy.eval.reports.comparing import compare_runs
from kraq_dspy.eval.reports.grids import changed_questions, grids
from kraq_dspy.eval.reports.summary import find_runs, scores_of, summarise, summarise_run
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader


def header(**extra: Any) -> RunHeader:
    table = {
        "title": "A table",
        "kind": "answers",
        "baseline": "old",
        "metrics": ["right"],
        "systems": {"old": {}, "new": {}},
        "ablations": [],
        "budgets": [],
    }
    return RunHeader("t", "d", {}, {"seed": 0}, {}, extra={"table": table, "asked": 4, **extra})


def rows(system: str, scores: Sequence[float | None]) -> list[ResultRow]:
    return [
        ResultRow(f"q{number}", system, answer="x", metrics={} if score is None else {"right": score},
            failure="no answer came" if score is None else None)
        for number, score in enumerate(scores)
    ]  # fmt: skip


def test_figures_do_not_hang_on_the_order_in_which_questions_were_answered() -> None:
    answered = [*rows("old", [0, 0.2, 1, 1, 0.4, 0.7]), *rows("new", [1, 0.5, 1, 0.1, 0.9, 0.3])]
    in_order, reversed_ = (summarise_run(header(), each) for each in (answered, answered[::-1]))
    assert in_order.systems == reversed_.systems


def test_means_and_the_difference_over_the_questions_that_both_answered() -> None:
    run = summarise_run(header(), [*rows("old", [0, 0, 1, 1]), *rows("new", [1, 1, 1, None])])
    old, new = run.systems
    assert (old.name, old.n, old.n_failed) == ("old", 4, 0)
    assert (new.name, new.n, new.n_failed) == ("new", 4, 1)
    assert new.cells["right"].interval is not None
    assert (new.cells["right"].interval.estimate, new.cells["right"].interval.n) == (1.0, 3)
    assert new.cells["right"].n_failed == 1
    assert new.reasons == {"no answer came": 1}
    difference = new.cells["right"].difference
    assert difference is not None
    assert difference.estimate == pytest.approx(2 / 3)  # 1, 1, 0 over the three shared questions
    assert new.cells["right"].n_paired == 3
    assert new.cells["right"].p_value == pytest.approx(0.5)  # two changes, both for the better: 2 of 4 sign patterns
    assert old.cells["right"].difference is None


def test_questions_for_which_a_metric_is_undefined_are_no_failures() -> None:
    undefined = ResultRow("q3", "old", answer="x", extra={"undefined": ["right"]})
    run = summarise_run(header(), [*rows("old", [1, 1, 0]), undefined])
    cell = run.systems[0].cells["right"]
    assert (cell.n_undefined, cell.n_failed) == (1, 0)
    assert cell.interval is not None
    assert cell.interval.n == 3


def test_a_row_without_a_score_and_without_a_reason_is_refused() -> None:
    with pytest.raises(EvaluationError, match="'q0' has no 'right'"):
        summarise_run(header(), [ResultRow("q0", "old", answer="x", metrics={"other": 1.0})])


def test_a_run_that_is_not_finished_says_what_is_missing() -> None:
    run = summarise_run(header(), [*rows("old", [1, 0, 1, 0]), *rows("new", [1])])
    assert run.missing == {"new": 3}


def test_a_run_that_asked_nothing_yet_has_no_figures() -> None:
    run = summarise_run(header(), [])
    assert (run.systems, run.baseline) == ((), "")


def test_p_values_are_adjusted_for_the_number_of_systems() -> None:
    worse = [
        ResultRow(row.question_id, "third", answer="x", metrics=row.metrics) for row in rows("third", [1, 1, 1, 1])
    ]
    run = summarise_run(header(), [*rows("old", [0, 0, 0, 0]), *rows("new", [1, 1, 1, 1]), *worse])
    cell = run.systems[1].cells["right"]
    assert cell.p_value == pytest.approx(0.125)
    assert cell.p_adjusted == pytest.approx(0.25)


@pytest.mark.parametrize(("adjusted", "shown"), [(0.049, "p=.010*"), (0.05, "p=.010* (Holm p=.050)")])
def test_a_difference_that_the_number_of_systems_may_explain_says_so(adjusted: float, shown: str) -> None:
    run = summarise_run(header(), [*rows("old", [0, 0, 1, 1]), *rows("new", [1, 1, 1, 1])])
    old, new = run.systems
    cell = dataclasses.replace(new.cells["right"], p_value=0.01, p_adjusted=adjusted)
    run = dataclasses.replace(run, systems=(old, dataclasses.replace(new, cells={"right": cell})))
    [grid] = [grid for grid in grids(run) if grid.title.startswith("Difference from")]
    assert grid.rows[0][1].endswith(shown)


def test_another_baseline_can_be_named_and_must_exist() -> None:
    both = [*rows("old", [0, 0, 1, 1]), *rows("new", [1, 1, 1, 1])]
    run = summarise_run(header(), both, baseline="new")
    assert run.baseline == "new"
    assert run.systems[0].cells["right"].difference is not None
    with pytest.raises(EvaluationError, match="there are: old, new"):
        summarise_run(header(), both, baseline="nobody")


def test_latency_comes_by_stage_as_measured_and_as_modelled() -> None:
    timed = [
        ResultRow(
            f"q{number}", "old", metrics={"right": 1.0}, timings={"retrieve": 1.0, "draft": [2.0, 3.0], "total": 9.0}
        )
        for number in range(2)
    ]
    stages = summarise_run(header(), timed).systems[0].stages
    assert stages["total"].p50 == 9.0
    assert parallel_seconds(stages) == 4.0  # 1 + the slowest draft


def test_a_folder_without_a_run_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="kraq eval"):
        find_runs(tmp_path)


def test_runs_of_different_tables_are_not_mixed(tmp_path: Path) -> None:
    for name, title in (("a", "A table"), ("b", "Another")):
        head = header()
        head = RunHeader(title, "d", {}, {}, {}, extra={"table": {**head.extra["table"], "title": title}})
        writer = RowWriter(tmp_path / name, head)
        writer.write(rows("old", [1.0])[0])
    with pytest.raises(EvaluationError, match="different tables"):
        summarise(find_runs(tmp_path))


def test_the_processors_share_is_that_of_all_cores_while_questions_were_asked() -> None:
    usage = [{"calls": 1, "clock_s": 2.0, "cpu_s": 1.0}, {"calls": 3, "clock_s": 6.0, "cpu_s": 1.0}]
    answered = [ResultRow(f"q{n}", "old", metrics={"right": 1}, extra={"usage": each}) for n, each in enumerate(usage)]
    resources = summarise_run(header(), answered).systems[0].resources
    assert resources["calls"] == 2
    assert "memory_mb" not in resources
    assert resources["cpu_percent"] == pytest.approx(25 / (os.cpu_count() or 1))
    told_nothing = [ResultRow("q0", "old", metrics={"right": 1}, extra={"usage": {"calls": 1}})]
    assert "cpu_percent" not in summarise_run(header(), told_nothing).systems[0].resources


def test_a_metric_that_failed_is_no_score_and_one_that_a_row_never_had_is_an_error() -> None:
    answered = [
        ResultRow("q1", "combined", metrics={"right": 1.0}),
        ResultRow("q2", "combined", failure="the server timed out"),
        ResultRow("q3", "combined", metrics={"right": 0.0}, failed_metrics={"judge": "the reply was 'maybe'"}),
    ]
    assert scores_of(answered, "right") == {"q1": 1.0, "q3": 0.0}
    assert scores_of(answered[1:], "judge") == {}
    with pytest.raises(EvaluationError, match="Question 'q1' has no 'judge'; it has right"):
        scores_of(answered, "judge")


def test_two_runs_are_compared_system_by_system(tmp_path: Path) -> None:
    for place, scores in (("before", [0.0, 0.0, 1.0]), ("after", [1.0, 1.0, 1.0])):
        writer = RowWriter(tmp_path / place, header())
        for row in rows("new", scores):
            writer.write(row)
    [run] = compare_runs(tmp_path / "before", tmp_path / "after")
    assert [system.name for system in run.systems] == ["new, first", "new, second"]
    difference = run.systems[1].cells["right"].difference
    assert difference is not None
    assert difference.estimate == pytest.approx(2 / 3)
    changed = changed_questions(run)
    assert changed is not None
    assert [row[0] for row in changed.rows] == ["q0", "q1"]


def test_the_means_of_ten_folds_stand_in_the_report_of_a_table_that_has_folds() -> None:
    """K2RAG's Algorithm 3: twenty questions, ten parts of two, each question in one of them."""
    rows = [ResultRow(f"q{number}", "rag", metrics={"right": float(number % 2)}) for number in range(20)]
    table = {"metrics": ["right"], "folds": 10, "title": "K", "kind": "answers"}
    run = summarise_run(RunHeader("k2rag", "questions", {}, {}, {}, extra={"table": table}), rows)
    cell = run.systems[0].cells["right"]
    assert len(cell.folds) == 10
    assert set(cell.folds) <= {0.0, 0.5, 1.0}
    assert sum(cell.folds) / 10 == 0.5
    [grid] = [grid for grid in grids(run) if grid.title == "Quartiles and folds"]
    assert grid.rows[0][0] == "rag, right"
    without = summarise_run(RunHeader("k2rag", "questions", {}, {}, {}), rows)
    assert without.systems[0].cells["right"].folds == ()
    assert not [grid for grid in grids(without) if grid.title == "Quartiles and folds"]
