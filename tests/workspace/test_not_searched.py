"""Thanks, and a question about nobody, are answered without a search wherever somebody asks."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.not_searched import ASKS_BACK, SOCIAL
from tests.kept import kept_index
from tests.warm import WarmShell

THANKS, NOBODY = "ok great, thank you very much", "Where was he born?"
REPLIES = {THANKS: "You are welcome.", NOBODY: 'Nobody was named whom "he" stands for: ask with the name.'}
TEXT = (
    "Team Ravens won 12 matches. Team Foxes won 15 matches. The coach of the Foxes is Mia Dahl. The coach of the "
    "Ravens is Sam Eide."
)


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("league") / "league.kraq"
    return kept_index([Document("league", "League", TEXT)], out)


@pytest.fixture
def space(league: Path) -> Iterator[Workspace]:
    with Workspace.open(league) as space:
        yield space


class MustNotRun(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        raise AssertionError(f"{question!r} was searched for")


class Echo(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=question)


@pytest.mark.parametrize("question", REPLIES)
def test_no_program_sees_them_in_any_form_of_asking(space: Workspace, question: str) -> None:
    program = MustNotRun()

    async def in_a_loop() -> list[Any]:
        streamed = [value async for value in space.astream(question, program)]
        return [await space.aask(question, program, refuse=True), streamed[-1]]

    answers = [space.ask(question, program), list(space.stream(question, program))[-1], *asyncio.run(in_a_loop())]
    assert {answer.answer for answer in answers} == {REPLIES[question]}
    assert {answer.source for answer in answers} == {SOCIAL if question == THANKS else ASKS_BACK}
    assert all(answer.hits == [] for answer in answers)


def test_anyway_the_program_sees_them(space: Workspace) -> None:
    assert space.ask(THANKS, Echo(), anyway=True).answer == THANKS
    assert space.ask(NOBODY, Echo(), anyway=True).answer == NOBODY


def test_who_was_named_before_is_meant_and_thanks_in_between_are_not(space: Workspace) -> None:
    said = [("Who is the coach of the Foxes?", "Mia Dahl.")]
    assert space.ask(NOBODY, Echo(), history=said).answer == f"Who is the coach of the Foxes? {NOBODY}"

    thanked = [*said, (THANKS, "You are welcome.")]
    prediction = space.ask("And of the Ravens?", history=thanked)
    assert prediction.standalone_question == "Who is the coach of the Foxes? And of the Ravens?"
    assert "Sam Eide" in prediction.answer


def test_the_command_and_the_chat_say_the_same(kraq: WarmShell, league: Path) -> None:
    for question, reply in REPLIES.items():
        assert reply in " ".join(kraq("ask", league, question).stdout.split())
        fields = json.loads(kraq("ask", league, question, "--json").stdout)
        assert (fields["answer"], fields["hits"]) == (reply, [])
