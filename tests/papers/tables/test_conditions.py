"""The conditions of a table differ in the one thing that the table is about, and in nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from kraq_dspy.apps.cli.tables import read
from kraq_dspy.asset.store.instructed import INSTRUCTED, any_instructed
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.about import about_choice
from kraq_dspy.eval.rows import read_run
from kraq_dspy.papers.catalogue import papers_tables
from kraq_dspy.papers.tables.systems import (
    distinct,
    own_options,
    program_of,
    require_looked_up,
    settings_of,
    with_equal_questions,
)
from kraq_dspy.papers.tables.table import DEFINITIONS, EvalTable, System, read_table
from kraq_dspy.retrievers.combined import share_budget
from kraq_dspy.settings import InstructedSettings, QuestionSettings, RoleSettings, Settings
from tests.papers.tables.conftest import Toy

TUNED = Settings(roles={"default": RoleSettings(), "generator": RoleSettings("gguf/smollm2-135m", temperature=0.5)})
COMPARED = ("combined", "speculative", "questions", "drafter", "retrievers")
"""Tables that compare sources of questions, or numbers of one program."""


def table(name: str) -> EvalTable:
    return read_table(DEFINITIONS / f"{name}.toml")


def differences(first: System, second: System) -> set[str]:
    """The options in which two entries differ; what an entry does not say is as "absent"."""
    options: list[dict[str, Any]] = [dict(each.options) for each in (first, second)]
    names = options[0].keys() | options[1].keys()
    differing = {name for name in names if options[0].get(name, "absent") != options[1].get(name, "absent")}
    return differing | ({"use"} if first.use != second.use else set())


@pytest.mark.parametrize("name", COMPARED)
def test_every_condition_has_another_from_which_it_differs_in_one_thing(name: str) -> None:
    systems = [each for each in table(name).systems if each.use in ("combined", "efficient", "speculative", "kraq")]
    assert len(systems) > 1
    for system in systems:
        others = [other for other in systems if other is not system]
        fewest = min((differences(system, other) for other in others), key=len)
        assert len(fewest) == 1, (system.name, fewest)


@pytest.mark.parametrize("name", ["combined", "speculative"])
def test_random_and_instructed_questions_differ_from_kraqs_in_their_source_alone(name: str) -> None:
    systems = {each.name: each for each in table(name).systems}
    program = "combined" if name == "combined" else "efficient"
    assert differences(systems[program], systems[f"{program}, random questions"]) == {"questions"}
    assert differences(systems[program], systems[f"{program}, instruct questions"]) == {"roles"}


PAPERS_COUNT = [name for name, each in papers_tables().items() if each.definition == "combined"]


@pytest.mark.parametrize("name", PAPERS_COUNT)
@pytest.mark.parametrize("as_in_paper", [False, True])
def test_every_condition_of_algorithm_1_in_a_table_of_the_papers_retrieves_the_papers_count(
    name: str, as_in_paper: bool
) -> None:
    compared = read(name).as_in_paper() if as_in_paper else read(name)
    conditions = [
        each for dataset in compared.datasets for each in compared.systems_for(dataset) if each.use == "combined"
    ]
    assert conditions
    for condition in conditions:
        options: Any = program_of(condition).options
        assert options.strict, condition.name


def test_the_papers_count_is_that_of_both_floors() -> None:
    assert share_budget(10, 2, 0.5, strict=True) == (5, 2)
    assert share_budget(10, 2, 0.5) == (6, 2)
    assert share_budget(15, 2, 0.0, strict=True) == (0, 7)


def test_names_are_a_row_of_their_own_for_both_sources() -> None:
    systems = {each.name: each for each in table("combined").systems}
    with_names = systems["combined, with names"]
    assert differences(systems["combined"], with_names) == {"names"}
    assert differences(with_names, systems["combined, random questions with names"]) == {"questions"}
    assert "names" not in own_options(systems["combined"])  # Algorithm 1 searches with the question's text


@pytest.mark.parametrize("name", ["combined", "speculative", "questions", "retrievers"])
def test_all_sources_of_questions_are_made_with_the_same_settings(name: str) -> None:
    """Fallback, candidates, wording, number and names are the index's, so one section holds for all conditions."""
    made = with_equal_questions(TUNED, table(name).systems)[0]
    sections = {repr(settings.questions) for _, settings in distinct(table(name).systems, made)[0]}
    [section] = sections
    assert section == repr(QuestionSettings(asked_by="model", fallback=False, candidates=1))


def test_a_user_s_own_settings_of_questions_hold_for_every_condition() -> None:
    own = replace(TUNED, questions=QuestionSettings(candidates=3, random_least=3))
    made, [note] = with_equal_questions(own, table("combined").systems)
    assert (made.questions.candidates, made.questions.random_least) == (3, 3)
    assert "no template asks in its place" in note


def test_the_instructed_condition_has_another_generator_and_nothing_else() -> None:
    made, _ = with_equal_questions(TUNED, table("combined").systems)
    systems = {each.name: each for each in table("combined").systems}
    tuned, instructed = (settings_of(systems[name], made) for name in ("combined", "combined, instruct questions"))
    assert tuned.role("generator") != instructed.role("generator") == made.role("default")
    assert replace(tuned, roles={}) == replace(instructed, roles={})


def test_a_table_without_another_source_of_questions_keeps_the_settings() -> None:
    assert with_equal_questions(TUNED, table("drafter").systems) == (TUNED, [])


SENTENCES = replace(TUNED, instructed=InstructedSettings(kind="sentences"))


@pytest.mark.parametrize("name", ["kraq-6", "kraq-7", "kraq-8"])
def test_the_papers_tables_of_algorithm_2_refuse_what_looks_no_question_up(name: str) -> None:
    with pytest.raises(ConfigError, match=r'is Algorithm 2.*"pair" or "inbedder"'):
        require_looked_up(read(name), SENTENCES)
    require_looked_up(read(name), TUNED)


def test_with_paper_the_table_refuses_it_too_and_without_it_says_which_variant_it_is() -> None:
    with pytest.raises(ConfigError, match="is Algorithm 2"):
        require_looked_up(table("speculative").as_in_paper(), SENTENCES)
    require_looked_up(table("speculative"), SENTENCES)
    [efficient] = [each for each in table("speculative").systems if each.name == "efficient"]
    about = about_choice(program_of(efficient), SENTENCES, "minilm", "dense")
    assert about["program"] == "efficient, the variant sentences"
    assert about_choice(program_of(efficient), TUNED, "minilm", "dense")["program"] == "efficient"


def test_the_variant_has_no_condition_of_other_questions() -> None:
    kept, notes = distinct(table("speculative").systems, SENTENCES)
    names = [system.name for system, _ in kept]
    assert "efficient" in names
    assert not [name for name in names if "questions" in name]
    assert len([note for note in notes if "looks no stored question up" in note]) == 2


def test_the_conditions_of_table_7_look_different_questions_up(toy: Toy) -> None:
    """KRAQ's condition is seen from questions of communities, Random's from questions about drawn chunks; both find
    theirs stored, whichever was prepared first."""
    conditions = [each for each in read("kraq-7").systems if each.name in ("efficient", "efficient, random questions")]
    seven = replace(read("kraq-7"), systems=tuple(conditions), precompute=3, metrics=("looked_up",))
    run = toy.run(seven, limit=1, tokens=1250)
    _, rows = read_run(run)
    assert {row.system for row in rows} == {condition.name for condition in conditions}
    assert all(row.metrics["looked_up"] > 0 for row in rows)
    sources = {(row.system, row.extra["q*"]["source"]) for row in rows}
    assert sources == {("efficient", "kraq"), ("efficient, random questions", "random")}
    with any_instructed(toy.index_of(run) / INSTRUCTED) as stored:
        assert len(stored.owners()) == len(sources)  # nothing is prepared for questions that the table does not look up
