"""Runs every table of the papers at its smallest size, one question over three passages, and reads titles and marks."""

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.apps.cli.tables import read
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.metrics.generation import require_packages
from kraq_dspy.eval.reports.grids import Grid
from kraq_dspy.eval.reports.page import write_report
from kraq_dspy.eval.reports.summary import TableSummary, require_rows, summarise, summarise_run
from kraq_dspy.eval.rows import read_run
from kraq_dspy.optimize import describe_domain
from kraq_dspy.optimize.domain import Domain
from kraq_dspy.papers.catalogue import PaperTable, papers_tables
from kraq_dspy.papers.listing import FAILED, paper_grids
from kraq_dspy.papers.tables.table import EvalTable
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings
from tests.papers.tables.conftest import LIGHTHOUSES, Toy

OTHER = RoleSettings(temperature=0.5)  # the embedded model once more, as another model of a role
SETTINGS = Settings(roles={"default": RoleSettings(), "generator": OTHER, "drafter": OTHER})


@cache
def not_here() -> frozenset[str]:
    """Metrics that this machine cannot compute."""
    try:
        require_packages("meteor")
    except EvaluationError:  # WordNet is not here
        return frozenset({"gpu_mb", "meteor"})
    return frozenset({"gpu_mb"})  # of an accelerator


RUN = {
    (table.definition, str(table.settings), str(table.options)): table.id
    for table in reversed(list(papers_tables().values()))
    if table.definition
}
"""A table for each of their definitions, and for each that sets more: those that share all three are one run."""


def table_of(figure: PaperTable, folder: Path, toy: Toy) -> EvalTable:
    """The whole table that a paper's stands for, or, where that sets more, what it needs."""
    table = toy.table(figure.definition)
    if figure.settings or figure.options:
        table = dataclasses.replace(read(figure.id).as_in_paper(), as_paper=None, precompute=1)
    table = dataclasses.replace(table, metrics=tuple(each for each in table.metrics if each not in not_here()))
    if figure.definition != "prompt_tuning":
        return table
    KRAQ(SETTINGS).extract.save(folder / "extraction.json")
    return table.with_state(Path(f"optimized extraction={folder / 'extraction.json'}"))


def made_by(figure: PaperTable) -> list[PaperTable]:
    """The tables that the same run stands for."""
    if figure.settings or figure.options:
        return [figure]
    plain = [each for each in papers_tables().values() if not (each.settings or each.options)]
    return [each for each in plain if each.definition == figure.definition]


def expected_rows(table: PaperTable) -> list[str]:
    """Those of the paper; where they name data sets of which none was run, those of ours below."""
    labels = [row.label for row in table.rows]
    first = table.rows[0].dataset
    if first and not any(row.dataset == "hotpotqa" for row in table.rows):
        labels += [row.label.replace(first, LIGHTHOUSES.name, 1) for row in table.rows if row.dataset == first]
    return labels


def read_grid(grid: Grid, table: PaperTable) -> None:
    """Fails where title, rows and figures do not say what was run."""
    labels = [row[0].removesuffix(" (2 prepared)").removesuffix(" (3 passages)") for row in grid.rows]
    assert labels == expected_rows(table)
    for label, row in zip(labels, grid.rows, strict=True):
        is_run = not table.rows[0].dataset or label.startswith("hotpotqa")
        for column, cell in zip(table.columns, row[1:], strict=True):
            metric = column.metric or next(each.metric for each in table.rows if each.metric)
            assert cell.startswith("-") == (not is_run or metric in not_here()), (table.id, label, column.label, cell)
    asks_for_more = table.definition not in ("questions", "prompt_tuning")  # these neither prepare nor retrieve
    assert ("(here of " in grid.title) == asks_for_more, grid.title


def with_failures(folder: Path, count: int) -> TableSummary:
    """The run whose first system failed on so many of its rows."""
    header, rows = read_run(folder)
    first = next(row.system for row in rows if row.system in header.extra["table"]["systems"])
    failed = [index for index, row in enumerate(rows) if row.system == first][:count]
    for index in failed:
        rows[index] = dataclasses.replace(rows[index], metrics={}, failure="TimeoutError: too long")
    run = summarise_run(header, rows)
    return TableSummary("", run.table["kind"], (run,))


@pytest.mark.parametrize("table_id", sorted(RUN.values()))
def test_a_table_of_the_papers_at_its_smallest_says_what_was_run(
    toy: Toy, lighthouses: Path, tmp_path: Path, table_id: str
) -> None:
    figure = papers_tables()[table_id]
    definition = table_of(figure, tmp_path, toy)
    folder = toy.run(definition, data=lighthouses, settings=SETTINGS, tokens=None, limit=1, describe=describe_domain)
    summary = summarise([folder])
    [run] = summary.runs
    assert [row.failure for row in run.rows if row.failure] == []
    require_rows(summary.runs)
    metrics = set(run.metrics)
    assert all(metrics == {*row.metrics, *row.extra.get("undefined", ())} for row in run.rows)

    grids = paper_grids(summary)
    write_report(summary, tmp_path, in_front=grids)
    report = (tmp_path / "report.html").read_text("utf-8")
    tables = made_by(figure)
    assert len(grids) == len(tables)
    for grid, table in zip(grids, tables, strict=True):
        assert grid.title.startswith(f"{table.paper}, {table.number}: {table.shows}")
        assert f"{table.paper}, {table.number}: " in report
        assert FAILED not in grid.note
        read_grid(grid, table)

    with pytest.raises(EvaluationError, match="TimeoutError: too long"):
        require_rows(with_failures(folder, 1).runs)


def test_a_table_tells_what_it_costs_before_it_asks(toy: Toy, lighthouses: Path, tmp_path: Path) -> None:
    told: list[str] = []
    table = dataclasses.replace(read("kraq-2"), concurrency=2)
    alone = Toy(tmp_path)
    alone.run(table, data=lighthouses, tokens=None, limit=1, out=tmp_path / "out", tell=told.append)
    alone.run(table, data=lighthouses, tokens=None, limit=2, out=tmp_path / "out", tell=told.append)
    assert told == [
        "hotpotqa-lighthouses: 1 question and 2 systems, of whose answers 0 are there; at least 4 calls to answer and "
        "judge the others. 1 index is to be made of 3 documents: about 7 calls.",
        "hotpotqa-lighthouses: 2 questions and 2 systems, of whose answers 2 are there; at least 4 calls to answer and "
        "judge the others. Its indexes are there.",
    ]


def test_prompt_tuning_asks_once_what_the_corpus_is_about_and_extracts_so(
    toy: Toy, lighthouses: Path, tmp_path: Path
) -> None:
    asked: list[int] = []

    def describe(documents: Sequence[Document], *args: Any, **options: Any) -> Domain:
        asked.append(len(documents))
        return Domain("lights", "A keeper of lights.", ("lighthouse", "engineer"))

    for _ in range(2):
        out = toy.run(read("kraq-9"), data=lighthouses, tokens=None, limit=1, out=tmp_path, describe=describe)
    header, rows = read_run(out)
    assert asked == [3]
    assert {row.system for row in rows} == {"no tuning", "prompt tuning"}
    assert "the extractor reads as 'A keeper of lights.', for lighthouse, engineer." in header.extra["notes"][-1]
    with pytest.raises(ConfigError, match="describe="):
        toy.run(read("kraq-9"), data=lighthouses, tokens=None, limit=1, out=tmp_path / "none")
