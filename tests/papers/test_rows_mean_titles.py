"""A figure of fewer rows is marked, a smaller FAQ cache is told, and a system without a row ends in an error."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from kraq_dspy.apps.cli.tables import read, without_metrics
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.reports.grids import Grid
from kraq_dspy.eval.reports.summary import TableSummary, require_rows, summarise_run
from kraq_dspy.eval.rows import ResultRow, RunHeader
from kraq_dspy.papers.listing import FAILED, paper_grids
from kraq_dspy.papers.tables.table import DEFINITIONS, read_table


def summary(name: str, rows: list[ResultRow], metrics: list[str], **extra: Any) -> TableSummary:
    table = read_table(DEFINITIONS / f"{name}.toml")
    systems: Mapping[str, Any] = {each.name: {"use": each.use, **each.options} for each in table.systems}
    described = {"kind": table.kind, "baseline": table.baseline, "metrics": metrics, "systems": systems}
    header = RunHeader(name, table.datasets[0], {}, {"seed": 0}, {}, extra={"table": described, "asked": 4, **extra})
    return TableSummary(table.title, table.kind, (summarise_run(header, rows),))


def rows_of(system: str, scores: Mapping[str, float], failed: int = 0, asked: int = 4) -> list[ResultRow]:
    """`asked` rows, of which the first ones failed; a half is in every score."""
    timings = {"total": 2.0, "draft": 2.0}
    return [
        ResultRow(f"q{number}", system, failure="TimeoutError: too long")
        if number < failed
        else ResultRow(f"q{number}", system, metrics=scores, timings=timings)
        for number in range(asked)
    ]


def grid(of: TableSummary, start: str) -> Grid:
    [found] = [each for each in paper_grids(of) if each.title.startswith(start)]
    return found


def test_a_figure_of_which_rows_failed_says_of_how_many_it_is() -> None:
    scores = {"paper_match": 0.5, "judge": 1.0}
    both = summary("combined", rows_of("traditional", scores) + rows_of("combined", scores, 1), list(scores))
    table = grid(both, "KRAQ paper, Table 2")
    cells = next(" ".join(row) for row in table.rows if "[" in " ".join(row))
    assert "50 [3 of 4] (" in cells
    assert cells.count("[3 of 4]") == 2
    assert FAILED in table.note

    whole = summary("combined", rows_of("traditional", scores) + rows_of("combined", scores), list(scores))
    table = grid(whole, "KRAQ paper, Table 2")
    assert "[" not in " ".join(map(" ".join, table.rows))
    assert FAILED not in table.note


def test_a_system_that_was_asked_fewer_questions_is_marked_too() -> None:
    scores = {"paper_match": 0.5, "judge": 1.0}
    rows = rows_of("traditional", scores) + rows_of("combined", scores, asked=3)
    table = grid(summary("combined", rows, list(scores)), "KRAQ paper, Table 2")
    assert "[3 of 4]" in " ".join(map(" ".join, table.rows))


def test_a_share_is_not_taken_of_two_means_over_other_questions() -> None:
    scores = {"paper_match": 0.5, "judge": 1.0}
    for failed, expected in ((0, "0 ("), (1, "- [7 of 8] (")):
        rows = rows_of("speculative", scores) + rows_of("efficient", scores, failed)
        table = grid(summary("speculative", rows, list(scores)), "KRAQ paper, Table 5")
        reductions = [row[-1] for row in table.rows if not row[1].startswith("-")]
        assert any(each.startswith(expected) for each in reductions), (failed, table.rows)


def test_a_faq_smaller_than_the_paper_s_is_told_in_title_and_rows() -> None:
    systems = [each.name for each in read_table(DEFINITIONS / "qa_sizes.toml").systems]
    rows = [row for name in systems for row in rows_of(name, {"right": 1.0})]
    small = summary("qa_sizes", rows, ["right"], prepared_answers=4)
    table = grid(small, "QA search, Table 8")
    assert table.title.endswith("(here of 4 prepared)")
    assert all(row[0].endswith("(4 prepared)") for row in table.rows)

    large = grid(summary("qa_sizes", rows, ["right"], prepared_answers=1500), "QA search, Table 8")
    assert "here" not in large.title
    assert not any("prepared)" in row[0] for row in large.rows)


def test_a_block_larger_than_the_faq_is_told() -> None:
    rows = rows_of("qa search, rephrased", {"right": 1.0}) + rows_of("rag, chunks of 200", {"right": 1.0})
    table = grid(summary("qa_search", rows, ["right"], prepared_answers=149), "QA search, Table 11")
    assert table.title.endswith("(here of 149 prepared)")
    large = grid(summary("qa_search", rows, ["right"], prepared_answers=150), "QA search, Table 11")
    assert "here" not in large.title


def test_fewer_passages_than_a_row_asks_for_are_told_in_that_row() -> None:
    scores = {"paper_match": 0.5, "judge": 1.0}
    both = summary("combined", rows_of("traditional", scores) + rows_of("combined", scores), list(scores), passages=14)
    table = grid(both, "KRAQ paper, Table 2")
    assert table.title.endswith("(here of 14 passages)")
    assert [row[0] for row in table.rows if row[0].endswith("(14 passages)")] == ["triviaqa (14 passages)"]
    enough = summary(
        "combined", rows_of("traditional", scores) + rows_of("combined", scores), list(scores), passages=15
    )
    assert "here" not in grid(enough, "KRAQ paper, Table 2").title


def test_questions_without_a_gold_answer_are_marked_too() -> None:
    scores = {"paper_match": 0.5, "judge": 1.0}
    rows = rows_of("traditional", scores) + rows_of("combined", scores)
    rows[0] = dataclasses.replace(rows[0], metrics={"judge": 1.0}, extra={"undefined": ["paper_match"]})
    cells = " ".join(map(" ".join, grid(summary("combined", rows, list(scores)), "KRAQ paper, Table 2").rows))
    assert cells.count("[3 of 4]") == 1


def test_a_system_of_which_every_row_failed_ends_in_an_error_that_says_why() -> None:
    scores = {"paper_match": 0.5}
    require_rows(summary("combined", rows_of("traditional", scores, 3), list(scores)).runs)
    with pytest.raises(EvaluationError, match=r"'traditional'.*4 of 4.*TimeoutError: too long.*--retry-failed"):
        require_rows(summary("combined", rows_of("traditional", scores, 4), list(scores)).runs)

    unjudged = [ResultRow(f"q{number}", "traditional", failed_metrics={"judge": "maybe"}) for number in range(4)]
    with pytest.raises(EvaluationError, match=r"'traditional'.*4 of 4.*most often: maybe"):
        require_rows(summary("combined", unjudged, ["judge"]).runs)


def test_a_column_is_left_out_by_name_and_the_others_stay() -> None:
    table = read("qa-rag-2")
    left = without_metrics(table, ["meteor"]).metrics
    assert "meteor" in table.metrics
    assert left == tuple(metric for metric in table.metrics if metric != "meteor")
    with pytest.raises(ConfigError, match=r"no such column; it has: .*meteor"):
        without_metrics(table, ["meteors"])
    with pytest.raises(ConfigError, match="leaves no column"):
        without_metrics(table, list(table.metrics))
