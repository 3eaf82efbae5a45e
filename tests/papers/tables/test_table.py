"""A table is read from TOML, and one that cannot be run is refused."""

from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.papers.tables.table import read_table, table_from_dict

TABLES = Path(__file__).resolve().parents[3] / "kraq_dspy" / "papers" / "tables" / "definitions"


def content(**changes: Any) -> dict[str, Any]:
    return {
        "title": "T",
        "kind": "answers",
        "baseline": "plain",
        "metrics": ["exact_match"],
        "systems": [
            {"name": "plain", "program": "traditional", "k": 15},
            {"name": "combined", "program": "combined", "k": 15, "n": 2, "alpha": 0.5},
        ],
        **changes,
    }


@pytest.mark.parametrize("path", sorted(TABLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_tables_of_the_project_can_be_read(path: Path) -> None:
    table = read_table(path)
    assert table.name == path.stem
    assert table.systems_for("hotpotqa")[0].name == table.systems[0].name


def test_the_papers_settings_are_in_the_combined_table() -> None:
    table = read_table(TABLES / "combined.toml")
    by_name = {system.name: system.options for system in table.systems_for("hotpotqa")}
    assert by_name["combined"] == {"k": 15, "n": 2, "alpha": 0.5, "strict": True}
    assert {name for name in by_name if "=" in name} == {
        "combined, alpha=0.25", "combined, alpha=0.75", "combined, alpha=1",
        "combined, n=1", "combined, n=3", "combined, n=4",
    }  # fmt: skip
    assert {system.options["k"] for system in table.systems_for("pubhealth")} == {10}


def test_an_ablation_varies_one_setting_and_does_not_run_a_value_twice() -> None:
    table = table_from_dict("t", content(ablations=[{"of": "combined", "parameter": "n", "values": [1, 2, 3]}]))
    assert [system.name for system in table.systems if system.varied == "combined"] == [
        "combined, n=1",
        "combined, n=3",
    ]
    options = {system.name: system.options for system in table.systems}
    assert options["combined, n=3"] == {"k": 15, "n": 3, "alpha": 0.5}


def test_an_ablation_runs_on_the_data_sets_that_it_names() -> None:
    ablations = [{"of": "combined", "parameter": "n", "values": [1], "datasets": ["hotpotqa"]}]
    table = table_from_dict("t", content(ablations=ablations))
    assert [system.name for system in table.systems_for("squad")] == ["plain", "combined"]
    for name in ("hotpotqa", "hotpot_qa", "hotpotqa-mini"):
        assert [system.name for system in table.systems_for(name)] == ["plain", "combined", "combined, n=1"]


def test_a_data_set_has_settings_of_its_own_but_not_for_what_an_ablation_varies() -> None:
    ablations = [{"of": "combined", "parameter": "n", "values": [1]}]
    table = table_from_dict("t", content(ablations=ablations, options={"pubhealth": {"k": 10, "n": 4}}))
    options = {system.name: system.options for system in table.systems_for("pub_health")}
    assert options["plain"] == {"k": 10}
    assert options["combined"] == {"k": 10, "n": 4, "alpha": 0.5}
    assert options["combined, n=1"] == {"k": 10, "n": 1, "alpha": 0.5}


def test_a_state_goes_into_every_program_or_into_one_and_what_varies_it() -> None:
    varied = [{"of": "combined", "parameter": "n", "values": [2, 3]}]
    table = table_from_dict("t", content(ablations=varied))
    everywhere = table.with_state(Path("s.json"))
    assert [system.options["state"] for system in everywhere.systems] == ["s.json"] * 3
    one = table.with_state(Path("combined=s.json")).with_state(Path("plain=other.json"))
    assert [system.options["state"] for system in one.systems] == ["other.json", "s.json", "s.json"]


@pytest.mark.parametrize(
    ("kind", "file", "says"),
    [
        ("answers", "combned=s.json", "no system; there are: plain, combined"),
        ("retrievers", "a.json", "one of retrievers"),
    ],
)
def test_a_state_that_has_no_place_is_refused(kind: str, file: str, says: str) -> None:
    finder = {"kind": kind, "systems": [{"name": "plain", "retriever": "dense"}]}
    table = table_from_dict("t", content(**(finder if kind == "retrievers" else {})))
    with pytest.raises(ConfigError, match=says):
        table.with_state(Path(file))


def test_rankings_of_retrievers_are_measured_at_every_budget() -> None:
    systems = [{"name": "plain", "retriever": "dense"}]
    table = table_from_dict("t", content(kind="retrievers", systems=systems, metrics=["recall"], budgets=[5, 10]))
    assert table.metrics == ("recall@5", "recall@10")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "guesses"}, "expected one of questions, answers, retrievers"),
        ({"baseline": "nobody"}, "there are: plain, combined"),
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"systems": [{"name": "x"}]}, "a system needs a name and a program"),
        ({"systems": [{"name": "plain", "program": "a"}] * 2}, "two systems are named 'plain'"),
        ({"ablations": [{"of": "combined", "values": [1]}]}, "is missing 'parameter'"),
        ({"ablations": [{"of": "nobody", "parameter": "n", "values": [1]}]}, "names no system"),
    ],
)
def test_a_table_that_cannot_be_run_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        table_from_dict("t", content(**changes))


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no table of systems"):
        read_table(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_table(tmp_path / "bad.toml")
