"""Tests that the catalogue of the papers' tables is complete and names only tables that this library runs."""

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

from kraq_dspy.apps.cli.commands import COMMANDS, Group
from kraq_dspy.apps.cli.tables import read
from kraq_dspy.errors import ConfigError
from kraq_dspy.papers.catalogue import PaperTable, paper_table, papers_tables
from kraq_dspy.papers.listing import RESOURCES
from kraq_dspy.papers.tables.table import DEFINITIONS, read_table
from kraq_dspy.settings import Settings

TABLES = list(papers_tables().values())
PRINTED: dict[str, tuple[set[int], set[int]]] = {
    "KRAQ paper": (set(range(1, 11)), {2}),
    "QA-RAG": (set(range(1, 5)), set()),
    "K2RAG": (set(range(1, 5)), set(range(11, 15))),
    "QA search": ({1, *range(3, 17)}, set(range(2, 6))),
}
"""Tables and figures that the papers print with results; QA search's Table 2 is the scheme of its rephrasings."""


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_with_results_is_declared(paper: str) -> None:
    numbers = [table.number for table in TABLES if table.paper == paper]
    tables = {int(number) for each in numbers for number in re.findall(r"Table (\d+)", each)}
    figures = {int(number) for each in numbers for number in re.findall(r"Figure (\d+)", each)}
    assert (tables, figures) == PRINTED[paper]


def test_the_thesis_prints_thirteen() -> None:
    numbers = " ".join(table.number for table in TABLES if table.paper == "KRAQ thesis")
    assert sorted(re.findall(r"\d\.\d", numbers)) == [
        "3.1", "3.2", "3.3", "3.6", "4.1", "4.2", "4.3", "4.4", "5.1", "5.1", "5.2", "5.2", "5.3",
    ]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_what_a_table_names_is_there(table: PaperTable) -> None:
    members = [each for commands in COMMANDS.values() for each in commands.items()]
    groups = {name: set(each.commands) for name, each in members if isinstance(each, Group)}
    if not table.command:
        return
    program, name, *words = table.command.split()
    assert program == "kraq"
    assert name in dict(members)
    if name in groups:
        assert words[0] in (*groups[name], *papers_tables())
    if not table.definition:
        return
    definition = read_table(DEFINITIONS / f"{table.definition}.toml")
    assert table.systems <= {system.name for system in definition.systems}
    assert set(table.metrics) <= {*definition.metrics, *RESOURCES}
    for section, values in table.settings.items():
        dataclasses.replace(getattr(Settings(), section), **values)
    assert set(table.datasets) <= set(definition.datasets)
    assert len(table.theirs) == len(table.rows)


def test_every_definition_of_a_papers_table_that_help_names_can_be_read() -> None:
    assert all(read_table(file).systems for file in DEFINITIONS.glob("*.toml"))


def test_ids_are_unique_and_a_wrong_one_is_told_with_the_nearest() -> None:
    assert max(Counter(table.id for table in TABLES).values()) == 1
    with pytest.raises(ConfigError, match="kraq-10"):
        paper_table("kraq10")


def test_a_cell_is_named_by_its_row_and_its_column() -> None:
    table = papers_tables()["qa-rag-2"]
    [raptor_v, *_] = table.cells[0]
    assert (raptor_v.systems, raptor_v.metric) == (("v over raptor",), "bleu_1")
    last = papers_tables()["kraq-8"].cells[2][1]
    assert last.systems == ("efficient, k=3, m=8, n=20",)


def test_the_printed_figures_are_the_papers() -> None:
    tables = papers_tables()
    assert tables["kraq-2"].theirs[0] == (57.0, 58.6, 70.3, 71.3)
    assert tables["thesis-4.1"].theirs[0] == (57.0, 58.6, 76.3, 77.3)
    assert tables["k2rag-2"].theirs[-1] == (0.4, 0.57, 0.82)


def test_the_folder_of_declarations_travels_with_the_package() -> None:
    assert {file.stem for file in (Path(__file__).parents[2] / "kraq_dspy/papers/printed").glob("*.toml")} == {
        "kraq", "thesis", "qa_rag", "k2rag", "qa_search", "setups",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "n", "k", "m", "questions"),
    [
        ("bioasq", 18, 5, 10, 500),
        ("hotpotqa", 10, 4, 8, 300),
        ("triviaqa", 10, 2, 5, 300),
        ("pubhealth", 10, 2, 5, 600),
    ],
)
def test_algorithm_2_is_asked_with_the_thesis_parameters(dataset: str, n: int, k: int, m: int, questions: int) -> None:
    table = read("thesis-5.2").as_in_paper()  # thesis, 5.2.6
    assert table.paper.sample(dataset) == questions
    for system in table.systems_for(dataset):
        assert {name: system.options[name] for name in ("n", "k", "m")} == {"n": n, "k": k, "m": m}
