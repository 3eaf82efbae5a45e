"""Every summary gets a question: the model's, or a template's where the model wrote none."""

import asyncio

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs import KRAQ
from kraq_dspy.programs.kraq.asked_by import ListedPassages
from kraq_dspy.records import Chunk, Community, Entity, Question, Summary, content_id
from kraq_dspy.settings import EMBEDDED, QuestionSettings, Settings
from kraq_dspy.steps.direct import DirectSteps

FILM = Summary("c", "Ed Wood", "Ed Wood is a 1994 American film directed and produced by Tim Burton.")
BLANK = Summary("c", "", "...")


def question_of(summary: Summary, reply: str, settings: Settings | None = None) -> Question:
    community = Community("c", 0, None, (), ("e",), (), ("chunk",))
    [question] = questions_of([community], [summary], DummyLM([{"question": reply}] * 2), settings or Settings())
    return question


def questions_of(
    communities: list[Community], summaries: list[Summary], lm: DummyLM, settings: Settings
) -> list[Question]:
    """Of communities whose only passage tells the film's summary."""
    kraq, steps = KRAQ(settings), DirectSteps(1)
    passages = ListedPassages([Chunk("chunk", "doc", 0, 0, len(FILM.text), FILM.text, 20, FILM.title)])

    async def asked() -> list[Question]:
        asked_by = kraq.asked_by(communities, passages, steps)
        questions = kraq.questions(communities, summaries, {"chunk": "doc"}, steps, asked_by=asked_by)
        return [question async for question in questions]

    with dspy.context(lm=lm):
        return asyncio.run(asked())


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
    community = Community("c", 0, None, (), ("e",), (), ())  # no passage, and a summary of nothing
    lm = DummyLM([{"question": "What is this?"}] * 2)
    [question] = questions_of([community], [BLANK], lm, Settings())
    assert (question.text, question.model == EMBEDDED) == ("What is this?", False)


def test_without_the_fallback_what_the_model_wrote_stays_as_that_of_the_random_baseline_does() -> None:
    """So that conditions of a comparison are equal: Random has no template."""
    settings = Settings(questions=QuestionSettings(fallback=False))
    question = question_of(FILM, "What is the summary about?", settings=settings)
    assert (question.text, question.model == EMBEDDED) == ("What is the summary about?", False)


@pytest.mark.parametrize("asked_by", ["auto", "model"])
def test_a_generator_that_is_named_is_asked_once_about_each_summary(asked_by: str) -> None:
    communities = [Community(f"c{number}", number, None, (), ("e",), (), ("chunk",)) for number in range(5)]
    summaries = [Summary(community.id, FILM.title, FILM.text) for community in communities]
    lm = DummyLM([{"question": "When was Ed Wood made?"}] * 20)
    questions = questions_of(communities, summaries, lm, Settings(questions=QuestionSettings(asked_by=asked_by)))
    assert len(lm.history) == len(communities)
    assert [question.text for question in questions] == ["When was Ed Wood made?"] * len(communities)
    assert all(FILM.text in str(call["messages"]) for call in lm.history)  # summaries, and not headings


def test_a_template_asks_where_the_second_call_gave_nothing_usable_either() -> None:
    community = Community("c", 0, None, (), ("e",), (), ("chunk",))
    lm = DummyLM([{"question": "What is the summary about?"}, {"question": "Ed Wood"}, {"question": "Who is Ed Wood?"}])
    [question] = questions_of([community], [FILM], lm, Settings())
    assert (question.text, question.model, len(lm.history)) == ("Who directed Ed Wood?", EMBEDDED, 2)


def test_templates_alone_ask_no_model() -> None:
    community = Community("c", 0, None, (), ("e",), (), ("chunk",))
    lm = DummyLM([{"question": "When was Ed Wood made?"}])
    settings = Settings(questions=QuestionSettings(asked_by="templates"))
    [question] = questions_of([community], [FILM], lm, settings)
    assert (question.text, question.model, len(lm.history)) == ("Who directed Ed Wood?", EMBEDDED, 0)


def test_templates_alone_ask_no_model_where_nothing_is_named_either_and_keep_a_topic() -> None:
    community = Community("c", 0, None, (), (), (), ())
    lm = DummyLM([{"question": "What is it about?"}])
    settings = Settings(questions=QuestionSettings(asked_by="templates"))
    [topic] = questions_of([community], [Summary("c", "", "so it goes on and on.")], lm, settings)
    assert (topic.text, topic.is_topic) == ("so it goes on and on.", True)
    assert lm.history == []


def test_a_template_asks_of_communities_that_the_model_is_not_asked_about() -> None:
    communities = [
        Community(id, level, None, (), ("e",), (), ("chunk",)) for level, id in enumerate(("broad", "narrow"))
    ]
    summaries = [Summary(community.id, FILM.title, FILM.text) for community in communities]
    settings = Settings(questions=QuestionSettings(broadest=1))
    questions = questions_of(communities, summaries, DummyLM([{"question": "When was Ed Wood made?"}]), settings)
    assert {question.community_id: question.text for question in questions} == {
        "broad": "When was Ed Wood made?",
        "narrow": "Who directed Ed Wood?",
    }


def test_a_random_question_keeps_the_central_names_of_its_chunks() -> None:
    """As a community's does, so that both sources can be searched with names: the most linked first."""
    chunks = [Chunk(id, id, 0, 0, 3, "Ada", 1) for id in ("c1", "c2", "c3")]
    entities = [
        Entity("e1", "Ada", "person", "", ("Ada",), ("c1", "c2"), 3),
        Entity("e2", "Rome", "place", "", ("Rome",), ("c2",), 5),
        Entity("e3", "Bern", "place", "", ("Bern",), ("c3",), 9),
    ]
    names = KRAQ(Settings(questions=QuestionSettings(names=2))).central_names_of_chunks(entities)
    assert names(chunks[:2]) == ("Rome", "Ada")
    assert names(chunks[2:]) == ("Bern",)
