"""Tests pairs and their critics: who is asked, when they stop, and what counts as a rating."""

import asyncio
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.extend import KraqAdapter
from kraq_dspy.programs import RateSyntheticPair, RereadSyntheticPair, WriteSyntheticPair
from kraq_dspy.programs.qa_search.critics import FIRST, REREADING, leads_back, same_answer
from kraq_dspy.records import Chunk, Hit

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


REREAD = {"question": "Who wrote Don Juan?", "answer": "Lord Byron", "passage": "Lord Byron wrote Don Juan."}


@pytest.mark.parametrize(
    ("answer", "again", "same"),
    [
        ("Lord Byron", "lord byron.", True),
        ("the Lord Byron", "Lord Byron", True),
        ("Lord Byron", "Don Juan was written by Lord Byron in 1819.", True),
        ("Lord George Byron", "Lord Byron", True),  # F1 .8
        ("Lord Byron", "Percy Shelley", False),
        ("Lord Byron", "I do not know", False),
        ("Lord Byron", "", False),
        ("", "Lord Byron", False),
        ("a poet", "the sea", False),  # articles alone are shared
        ("three ships of the line", "three", False),  # F1 .4
    ],
)
def test_an_answer_is_the_same_if_it_is_told_whole_or_shares_half_of_its_words(
    answer: str, again: str, same: bool
) -> None:
    assert same_answer("Who wrote it?", answer, again) is same


SAID = [
    (
        "Approximately how many works of art are included in the Far Eastern collections?",
        "more than 70,000",
        "70,000",
        True,
    ),
    (
        "what is the estimated cost of the v&a branded gallery?",
        "£76 million",
        "estimated at £76 million",
        True,
    ),
    (
        "what was the dominant housing template when industrial centres were growing the fastest?",
        "The Tyneside flat",
        "The Tyneside flat was the dominant housing form constructed at the time when the industrial centres on "
        "Tyneside were growing most rapidly.",
        True,
    ),
    ("What was Iqbal studying in England and Germany?", "law and philosophy", "England and Germany", False),
    ("Who registered the most sacks on the team this season?", "Kawann Short", "Kony Ealy", False),
    ("What do Beriods use as teeth?", "stiffened cilia", "Beriods use teeth as teeth.", False),
    ("How old was Manning when he played Super Bowl 50?", "Peyton Manning", "39", False),
]
"""Questions of SQuAD, an answer, and what Qwen2.5-Coder-0.5B answered from the passage."""


@pytest.mark.parametrize(("question", "answer", "again", "same"), SAID)
def test_what_a_small_model_said_is_compared_as_a_reader_would(
    question: str, answer: str, again: str, same: bool
) -> None:
    assert same_answer(question, answer, again) is same


def test_a_sentence_that_restates_the_question_does_not_tell_an_answer_made_of_its_words() -> None:
    question = "What do Beroids use as teeth?"
    assert not same_answer(question, "teeth", "Beroids use as teeth what the passage does not say of them")
    assert same_answer(question, "teeth", "Teeth.")


def test_scripts_without_spaces_are_compared_by_their_characters() -> None:
    assert same_answer("谁写了这本书？", "鲁迅先生", "鲁迅先生写的")
    assert not same_answer("谁写了这本书？", "鲁迅先生", "老舍写的")


@pytest.mark.parametrize(("again", "rejected_by"), [("Byron, Lord", ""), ("Percy Shelley", REREADING)])
def test_the_reader_decides_by_call_and_by_acall(again: str, rejected_by: str) -> None:
    program = RereadSyntheticPair()
    lm = DummyLM([{"answer": again}] * 2)
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        for prediction in (program(**REREAD), asyncio.run(program.acall(**REREAD))):
            assert (prediction.again, prediction.rejected_by) == (again, rejected_by)
    prompt = lm.history[0]["messages"][-1]["content"]
    assert REREAD["passage"] in prompt
    assert REREAD["question"] in prompt
    assert "[[ ## answer ## ]]\nLord Byron" not in prompt  # or it would copy what it is to find


class Hits:
    """Finds spans of one document, whatever is asked."""

    def __init__(self, *spans: tuple[str, int, int]) -> None:
        self.hits = [
            Hit(Chunk(str(place), document_id, place, start, end, "x", 1), 1.0, "dense")
            for place, (document_id, start, end) in enumerate(spans)
        ]
        self.asked: list[int] = []

    def __call__(self, question: str, k: int) -> list[Hit]:
        self.asked.append(k)
        return self.hits[:k]


ELSEWHERE = ("other", 0, 500)


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        ([ELSEWHERE, ("d", 150, 260)], True),  # a part of it
        ([ELSEWHERE, ("d", 0, 100), ("d", 200, 300)], False),  # its neighbours in the same document
        ([ELSEWHERE] * FIRST + [("d", 100, 200)], False),  # too late
        ([], False),
    ],
)
def test_a_question_leads_back_if_a_part_of_its_chunk_is_among_the_first(
    spans: list[tuple[str, int, int]], found: bool
) -> None:
    chunk = Chunk("c", "d", 1, 100, 200, "x", 1)
    retriever = Hits(*spans)
    assert asyncio.run(leads_back("Who?", chunk, retriever)) is found  # type: ignore[arg-type]
    assert retriever.asked == [FIRST]
