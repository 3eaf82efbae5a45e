"""Questions of a conversation, made complete by a model or left as they are."""

import asyncio
import logging
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError
from kraq_dspy.programs import StandaloneQuestion
from kraq_dspy.programs.conversation import LONGEST_ANSWER, MOST_TURNS, turns_of
from kraq_dspy.records import Turn

SAID = [("Who founded Maybach Music Group?", "Rick Ross.")]
BOTH = "Who founded Maybach Music Group? Where was he born?"


def replying(*questions: str) -> DummyLM:
    return DummyLM([{"complete_question": question} for question in questions])


def test_the_model_is_shown_what_was_said_and_its_question_is_used() -> None:
    lm = replying(BOTH)
    with dspy.context(lm=lm):
        reply = StandaloneQuestion()("Where was he born?", SAID)

    assert reply.question == BOTH
    assert reply.asked == "Where was he born?"
    prompt = str(lm.history[0]["messages"])
    assert "Question: Who founded Maybach Music Group?" in prompt
    assert "Answer: Rick Ross." in prompt


def test_awaited_it_does_the_same() -> None:
    with dspy.context(lm=replying(BOTH)):
        reply = asyncio.run(StandaloneQuestion().acall("Where was he born?", SAID))
    assert reply.question == BOTH


def test_a_first_question_asks_no_model() -> None:
    lm = replying()
    with dspy.context(lm=lm):
        assert StandaloneQuestion()("Where was he born?", []).question == "Where was he born?"
    assert lm.history == []


@pytest.mark.parametrize("said", ["", "   "])
def test_of_a_model_that_says_nothing_rules_complete_the_question(said: str) -> None:
    with dspy.context(lm=replying(said)):
        assert StandaloneQuestion()("Where was he born?", SAID).question == BOTH


def test_of_a_model_that_repeats_an_earlier_question_rules_complete_the_question() -> None:
    """As one of half a billion parameters did."""
    with dspy.context(lm=replying("who founded Maybach Music Group?")):
        assert StandaloneQuestion()("Where was he born?", SAID).question == BOTH


def test_what_rules_cannot_complete_stays_as_it_was() -> None:
    with dspy.context(lm=replying("")):
        assert StandaloneQuestion()("Wo liegt die Stadt?", SAID).question == "Wo liegt die Stadt?"


def test_of_a_model_that_fails_rules_complete_the_question_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), dspy.context(lm=DummyLM([{"nonsense": "x"}] * 8)):
        reply = StandaloneQuestion()("Where was he born?", SAID)
    assert reply.question == BOTH
    assert "completed by rules" in caplog.text


def test_of_a_long_conversation_the_latest_turns_are_shown_and_long_answers_lose_their_middle() -> None:
    turns = [(f"Question {number}?", "x" * 5000) for number in range(20)]
    lm = replying("Complete?")
    with dspy.context(lm=lm):
        StandaloneQuestion()("And then?", turns)

    prompt = str(lm.history[0]["messages"])
    shown = [number for number in range(20) if f"Question: Question {number}?" in prompt]
    assert shown == list(range(20 - MOST_TURNS, 20))
    assert "x" * (LONGEST_ANSWER + 1) not in prompt


@pytest.mark.parametrize(
    "history",
    [
        [Turn("Who was Ada?", "A mathematician.")],
        [("Who was Ada?", "A mathematician.")],
        [["Who was Ada?", "A mathematician."]],
        [{"question": "Who was Ada?", "answer": "A mathematician."}],
        dspy.History(messages=[{"question": "Who was Ada?", "answer": "A mathematician."}]),
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Who was Ada?"}]},
            {"role": "assistant", "content": "A mathematician."},
        ],
    ],
)
def test_turns_are_read_from_every_form_that_people_have(history: Any) -> None:
    assert turns_of(history) == [Turn("Who was Ada?", "A mathematician.")]


def test_several_messages_of_the_assistant_are_one_answer() -> None:
    messages = [
        {"role": "user", "content": "Who was Ada?"},
        {"role": "assistant", "content": "A mathematician."},
        {"role": "tool", "content": "ignored"},
        {"role": "assistant", "content": "She wrote a program."},
    ]
    assert turns_of(messages) == [Turn("Who was Ada?", "A mathematician.\nShe wrote a program.")]


@pytest.mark.parametrize("history", ["Who was Ada?", 7, [7], ["Who was Ada?"], [("one", "two", "three")], {"a": 1}])
def test_what_is_no_conversation_is_refused_with_the_forms_that_are(history: Any) -> None:
    with pytest.raises(ConfigError, match=r"\(question, answer\) pair"):
        turns_of(history)
