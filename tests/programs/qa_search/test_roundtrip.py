"""Pairs that are tried: does the question find its passage, and does the passage give the answer again?"""

import asyncio

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs.qa_search.roundtrip import FIRST, REREADING, RereadSyntheticPair, leads_back, same_answer
from kraq_dspy.records import Chunk, Hit

PAIR = {"question": "Who wrote Don Juan?", "answer": "Lord Byron", "passage": "Lord Byron wrote Don Juan."}


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
        for prediction in (program(**PAIR), asyncio.run(program.acall(**PAIR))):
            assert (prediction.again, prediction.rejected_by) == (again, rejected_by)
    prompt = lm.history[0]["messages"][-1]["content"]
    assert PAIR["passage"] in prompt
    assert PAIR["question"] in prompt
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
