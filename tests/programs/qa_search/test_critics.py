"""Pairs and their critics: who is asked, when they stop, and what counts as a rating."""

import asyncio
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.programs.qa_search.critics import RateSyntheticPair, WriteSyntheticPair, rating

PAIR = {"question": "Who wrote Don Juan?", "answer": "Lord Byron"}


def said(**ratings: Any) -> list[dict[str, Any]]:
    return [{"evaluation": "So.", name: value} for name, value in ratings.items()]


def rated(replies: list[dict[str, Any]], **options: Any) -> tuple[dspy.Prediction, DummyLM]:
    """By call and by acall, which agree."""
    lm, again = DummyLM(replies), DummyLM(replies)
    program = RateSyntheticPair("poets", **options)
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        prediction = program(**PAIR, passage="Lord Byron wrote Don Juan.")
    with dspy.context(lm=again, adapter=dspy.ChatAdapter()):
        awaited = asyncio.run(program.acall(**PAIR, passage="Lord Byron wrote Don Juan."))
    assert awaited.toDict() == prediction.toDict()
    return prediction, lm


def test_a_pair_passes_when_all_three_give_the_best_mark() -> None:
    prediction, lm = rated(said(groundedness=5, relevance=5, stand_alone=5))
    assert prediction.rejected_by == ""
    assert prediction.ratings == {"groundedness": 5, "relevance": 5, "stand_alone": 5}
    prompts = [call["messages"][-1]["content"] for call in lm.history]
    assert [("wrote Don Juan." in prompt, "poets" in prompt) for prompt in prompts] == [
        (True, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("ratings", "critic"),
    [
        ({"groundedness": 4}, "groundedness"),
        ({"groundedness": 5, "relevance": 1}, "relevance"),
        ({"groundedness": 5, "relevance": 5, "stand_alone": 4}, "stand_alone"),
    ],
)
def test_the_first_critic_below_the_bar_ends_it(ratings: dict[str, int], critic: str) -> None:
    prediction, lm = rated(said(**ratings))
    assert (prediction.rejected_by, prediction.ratings) == (critic, ratings)
    assert len(lm.history) == len(ratings)


def test_the_bar_may_be_lower() -> None:
    assert rated(said(groundedness=4, relevance=5, stand_alone=4), least=4)[0].rejected_by == ""


@pytest.mark.parametrize("reply", ["6", "0", "very good", "4.5"])
def test_a_rating_that_is_none_is_a_failure_and_no_praise(reply: str) -> None:
    lm = DummyLM([{"evaluation": "So.", "groundedness": reply}] * 2)
    with dspy.context(lm=lm, adapter=KraqAdapter()), pytest.raises(Exception, match="groundedness"):
        RateSyntheticPair("poets")(**PAIR, passage="Lord Byron wrote Don Juan.")


@pytest.mark.parametrize("value", [6, 0, -1, True, 5.0, "5", None])
def test_only_whole_numbers_from_1_to_5_are_ratings(value: object) -> None:
    assert [rating(number) for number in range(1, 6)] == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        rating(value)


def test_a_bar_that_nothing_can_reach_and_an_audience_of_nobody_are_refused() -> None:
    with pytest.raises(ValueError, match="least is 6"):
        RateSyntheticPair("poets", least=6)
    with pytest.raises(ValueError, match="audience is empty"):
        RateSyntheticPair(" ")


PASSAGE = "Ambition\nLord Byron wrote Don Juan. The album Ambition is a work of Ann."


@pytest.mark.parametrize(
    ("question", "answer", "pair"),
    [
        (" Who wrote Don Juan? ", " Lord Byron. ", ("Who wrote Don Juan?", "Lord Byron.")),
        ("A question:\nWho wrote Don Juan?", "Lord Byron.", ("Who wrote Don Juan?", "Lord Byron.")),
        ("Did Byron or Ann write Don Juan?", "Byron", ("Did Byron or Ann write Don Juan?", "Byron")),
        ("Who wrote Don Juan?", " ", None),  # half of a pair
        (" ", "Ann.", None),
        ("Lord Byron wrote Don Juan.", "Lord Byron", None),  # no question
        ("What is the name of the album Ambition?", 'The album is "Ambition".', None),  # tells its answer
        ("What does the passage say of Byron?", "Don Juan", None),
        ("Who invented the telephone?", "Bell", None),  # names nothing of the passage
        (" ".join(["Lord Byron wrote Don Juan"] * 7) + "?", "a poet", None),  # repeats the passage, 35 words
    ],
)
def test_what_is_no_pair_is_dropped(question: str, answer: str, pair: tuple[str, str] | None) -> None:
    reply = {"question": question, "answer": answer}
    with dspy.context(lm=DummyLM([reply, reply]), adapter=dspy.ChatAdapter()):
        prediction = WriteSyntheticPair()(passage=PASSAGE)
        awaited = asyncio.run(WriteSyntheticPair().acall(passage=PASSAGE))
    assert (prediction.question, prediction.answer) == (awaited.question, awaited.answer) == (pair or ("", ""))
