"""`--paper` sets a paper's settings and instructions, sends them to models, and lists them in the report."""

import dataclasses
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback

import kraq_dspy.signatures
from kraq_dspy.apps.cli.tables import read
from kraq_dspy.eval.reports.grids import setup_lines
from kraq_dspy.eval.reports.summary import summarise
from kraq_dspy.papers.catalogue import papers_tables, setups
from kraq_dspy.papers.tables.table import DEFINITIONS, read_table
from kraq_dspy.programs import KRAQ
from kraq_dspy.settings import ROLES, QuestionSettings, Settings
from tests.papers.tables.conftest import Toy

NO_ROLES = {"encoder", "bertscore", "instructed", "summariser"}


@pytest.mark.parametrize("name", setups())
def test_what_a_paper_set_is_there(name: str) -> None:
    setup = setups()[name]
    assert set(setup.prompts) <= set(kraq_dspy.signatures.NAMES)
    assert set(setup.models) <= {*ROLES, *NO_ROLES}
    for section, values in setup.settings.items():
        dataclasses.replace(getattr(Settings(), section), **values)


def test_every_table_of_the_papers_has_the_setup_of_one() -> None:
    definitions = {table.definition for table in papers_tables().values() if table.definition}
    assert {read_table(DEFINITIONS / f"{name}.toml").paper.setup for name in definitions} == set(setups())


def test_programs_get_the_instructions_and_keep_their_fields() -> None:
    pipeline = KRAQ(Settings())
    before = pipeline.ask.predictors()[0].signature
    setups()["kraq"].give_prompts(pipeline)
    [asking] = pipeline.ask.predictors()
    assert "conversational" in asking.signature.instructions
    assert list(asking.signature.fields) == list(before.fields)
    confirming = dspy.Predict("first, second -> same")
    setups()["kraq"].give_prompts(confirming)
    assert "first" in confirming.signature.instructions  # one that the paper does not have stays as it is


def test_the_thesis_asks_for_an_explanation_and_the_paper_does_not() -> None:
    options = {
        name: {system.name: system.options for system in read(name).as_in_paper().systems}
        for name in ("kraq-2", "thesis-4.1")
    }
    assert options["kraq-2"]["combined"]["strict"]
    assert "explain" not in options["kraq-2"]["combined"]
    assert options["thesis-4.1"]["combined"] == {**options["kraq-2"]["combined"], "explain": True}


def test_a_model_of_another_name_stands_in_and_the_papers_own_does_not() -> None:
    models = {"encoder": "hub/nomic-embed-text-v1.5", "answerer": "embedded", "drafter": "embedded"}
    lines = setups()["kraq"].described(models)
    assert lines["in place of the paper's"] == "embedded for Llama-3.1-8B-Instruct (answerer, drafter)"
    assert "[questions] asked_by = model" in lines["as in the paper"]


def test_a_run_begins_its_report_with_the_setup_or_with_what_it_lacks(toy: Toy) -> None:
    table = toy.table("qa_matching", systems=toy.table("qa_matching").systems[:1])
    plain, paper = (summarise([toy.run(each, limit=2)]) for each in (table, table.as_in_paper()))
    assert [run.systems[0].reasons for run in (*plain.runs, *paper.runs)] == [{}, {}]
    assert "--paper" in setup_lines(plain)["as in the paper"]
    assert "embedded for GPT-4o (rewriter, judge)" in setup_lines(paper)["in place of the paper's"]
    assert "FindSameQuestion" in setup_lines(paper)["as in the paper"]


class Instructions(BaseCallback):  # type: ignore[misc]
    """The system messages that models were given."""

    def __init__(self) -> None:
        self.given: set[str] = set()

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.given.add(" ".join(inputs["messages"][0]["content"].split()))


def test_a_run_asks_the_pipeline_the_programs_and_the_judge_with_the_papers_instructions(toy: Toy) -> None:
    table = toy.table("combined", metrics=("judge",)).as_in_paper()
    instructions = Instructions()
    asking = Settings(questions=QuestionSettings(asked_by="model"))
    with dspy.context(callbacks=[instructions]):
        toy.run(dataclasses.replace(table, systems=table.systems[:1]), limit=1, settings=asking)
    prompts = setups()["kraq"].prompts
    for name in ("ExtractElements", "SummarizeCommunity", "GenerateQuestion", "AnswerQuestion", "JudgeAnswer"):
        assert any(" ".join(prompts[name].split()) in given for given in instructions.given), name
