"""Runs every table of the papers at toy size: each ends in a report with the paper's rows, columns and figures."""

import dataclasses
from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.generation import require_packages
from kraq_dspy.eval.report_page import write_report
from kraq_dspy.eval.summary import summarise
from kraq_dspy.papers.catalogue import PaperTable, papers_tables
from kraq_dspy.papers.grids import paper_grids
from kraq_dspy.papers.listing import figures_of
from kraq_dspy.programs import KRAQ
from kraq_dspy.settings import RoleSettings, Settings
from tests.papers.tables.conftest import Toy

OTHER = RoleSettings(temperature=0.5)  # the embedded model once more, as another model of a role
SETTINGS = Settings(roles={"default": RoleSettings(), "generator": OTHER, "drafter": OTHER})
SLOW = ("qa_rag", "k2rag", "qa_search", "speculative", "drafter")
DEFINITIONS = sorted({table.definition for table in papers_tables().values() if table.definition})
NOT_HERE = {"gpu_mb"}  # of an accelerator
try:
    require_packages("meteor")
except EvaluationError:  # WordNet is not here
    NOT_HERE.add("meteor")


def expected_rows(table: PaperTable) -> list[str]:
    """Those of the paper; where they name data sets of which none was run, those of ours below."""
    labels = [row.label for row in table.rows]
    if table.rows[0].dataset and not any(row.dataset == "hotpotqa" for row in table.rows):
        first = table.rows[0].dataset
        labels += [row.label.replace(first, "hotpotqa-mini", 1) for row in table.rows if row.dataset == first]
    return labels


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in DEFINITIONS]
)
def test_a_table_of_the_papers_ends_in_a_report_with_the_papers_rows_and_columns(
    toy: Toy, tmp_path: Path, name: str
) -> None:
    table = toy.table(name)
    table = dataclasses.replace(table, metrics=tuple(each for each in table.metrics if each not in NOT_HERE))
    if name == "prompt_tuning":
        KRAQ(SETTINGS).extract.save(tmp_path / "extraction.json")
        table = table.with_state(Path(f"prompt tuning={tmp_path / 'extraction.json'}"))
    summary = summarise([toy.run(table, settings=SETTINGS, limit=2)])
    write_report(summary, tmp_path, in_front=paper_grids(summary))
    figures = {each.table.id: each for each in figures_of(summary)}
    declared = {
        table_id: paper
        for table_id, paper in papers_tables().items()
        if paper.definition == name and not (paper.settings or paper.options)
    }
    report = (tmp_path / "report.html").read_text("utf-8")
    assert set(figures) == set(declared)
    for table_id, paper in declared.items():
        assert f"{paper.paper}, {paper.number}: " in report
        assert list(figures[table_id].rows) == expected_rows(paper)
        run = [label for label in figures[table_id].rows if not paper.rows[0].dataset or "hotpotqa" in label]
        for label, values in zip(figures[table_id].rows, figures[table_id].ours, strict=True):
            for column, value in zip(paper.columns, values, strict=True):
                assert (value is None) == (label not in run or column.metric in NOT_HERE), (
                    table_id,
                    label,
                    column.label,
                )
    [only] = summary.runs
    assert {"device", "processor"} <= set(only.header.made_with)
    assert only.header.extra["data"]
    assert [row.failure for row in only.rows if row.failure] == []
