"""Every summary gets a question: the model's, or a template's where the model wrote none."""

import asyncio

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy._internal.step import AGAIN
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Community, Question, Summary, content_id
from kraq_dspy.settings import EMBEDDED, QuestionSettings, Settings
from kraq_dspy.steps.direct import DirectSteps

FILM = Summary("c", "Ed Wood", "Ed Wood is a 1994 American film directed and produced by Tim Burton.")
BLANK = Summary("c", "", "...")


def question_of(
    summary: Summary, reply: str, template: str = "Who directed Ed Wood?", settings: Settings | None = None
) -> Question:
    community = Community("c", 0, None, (), ("e",), (), ("chunk",))

    async def asked() -> list[Question]:
        questions = KRAQ(settings or Settings()).questions(
            [community], [summary], {"chunk": "doc"}, DirectSteps(1), template=lambda _, text: template
        )
        return [question async for question in questions]

    with dspy.context(lm=DummyLM([{"question": reply}] * (1 + AGAIN))):
        [question] = asyncio.run(asked())
    return question


@pytest.mark.parametrize("reply", [FILM.text, FILM.title, "What were their differences?", "What is the summary about?"])
def test_a_reply_that_is_no_question_of_its_own_makes_way_for_a_template(reply: str) -> None:
    question = question_of(FILM, reply)

    assert question.text != reply
    assert "Ed Wood" in question.text
    assert question.text.endswith("?")
    assert (question.model, question.id) == (EMBEDDED, content_id("question", "c", question.text))


def test_the_models_own_question_is_kept() -> None:
    question = question_of(FILM, "When was Ed Wood made?")
    assert (question.text, question.model == EMBEDDED) == ("When was Ed Wood made?", False)


def test_where_no_template_says_more_the_reply_stays() -> None:
    question = question_of(BLANK, "What is this?", template="")
    assert (question.text, question.model == EMBEDDED) == ("What is this?", False)


def test_without_the_fallback_what_the_model_wrote_stays_as_that_of_the_random_baseline_does() -> None:
    """So that arms of a comparison are equal: Random has no template."""
    settings = Settings(questions=QuestionSettings(fallback=False))
    question = question_of(FILM, "What is the summary about?", settings=settings)
    assert (question.text, question.model == EMBEDDED) == ("What is the summary about?", False)


def test_a_template_asks_of_communities_that_the_model_is_not_asked_about() -> None:
    communities = [Community(id, 0, None, (), ("e",), (), ("chunk",)) for id in ("broad", "narrow")]
    summaries = [Summary(community.id, FILM.title, FILM.text) for community in communities]

    async def asked() -> dict[str | None, str]:
        questions = KRAQ(Settings()).questions(
            communities, summaries, {}, DirectSteps(1), template=lambda _, text: "Who directed Ed Wood?",
            asked=lambda community, summary: community.id == "broad",
        )  # fmt: skip
        return {question.community_id: question.text async for question in questions}

    with dspy.context(lm=DummyLM([{"question": "When was Ed Wood made?"}])):
        assert asyncio.run(asked()) == {"broad": "When was Ed Wood made?", "narrow": "Who directed Ed Wood?"}
