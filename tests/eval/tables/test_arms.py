"""The arms of a table differ in the one thing that the table is about, and in nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from kraq_dspy.eval.tables.systems import distinct, own_options, settings_of, with_equal_questions
from kraq_dspy.eval.tables.table import DEFINITIONS, EvalTable, System, read_table
from kraq_dspy.settings import QuestionSettings, RoleSettings, Settings

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
def test_every_arm_has_another_from_which_it_differs_in_one_thing(name: str) -> None:
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


def test_names_are_a_row_of_their_own_for_both_sources() -> None:
    systems = {each.name: each for each in table("combined").systems}
    with_names = systems["combined, with names"]
    assert differences(systems["combined"], with_names) == {"names"}
    assert differences(with_names, systems["combined, random questions with names"]) == {"questions"}
    assert "names" not in own_options(systems["combined"])  # Algorithm 1 searches with the question's text


@pytest.mark.parametrize("name", ["combined", "speculative", "questions", "retrievers"])
def test_all_sources_of_questions_are_made_with_the_same_settings(name: str) -> None:
    """Fallback, candidates, wording, number and names are the index's, so one section holds for all arms."""
    made = with_equal_questions(TUNED, table(name).systems)[0]
    sections = {repr(settings.questions) for _, settings in distinct(table(name).systems, made)[0]}
    [section] = sections
    assert section == repr(QuestionSettings(asked_by="model", fallback=False, candidates=1))


def test_a_user_s_own_settings_of_questions_hold_for_every_arm() -> None:
    own = replace(TUNED, questions=QuestionSettings(candidates=3, random_least=3))
    made, [note] = with_equal_questions(own, table("combined").systems)
    assert (made.questions.candidates, made.questions.random_least) == (3, 3)
    assert "no template asks in its place" in note


def test_the_instructed_arm_has_another_generator_and_nothing_else() -> None:
    made, _ = with_equal_questions(TUNED, table("combined").systems)
    systems = {each.name: each for each in table("combined").systems}
    tuned, instructed = (settings_of(systems[name], made) for name in ("combined", "combined, instruct questions"))
    assert tuned.role("generator") != instructed.role("generator") == made.role("default")
    assert replace(tuned, roles={}) == replace(instructed, roles={})


def test_a_table_without_another_source_of_questions_keeps_the_settings() -> None:
    assert with_equal_questions(TUNED, table("drafter").systems) == (TUNED, [])
