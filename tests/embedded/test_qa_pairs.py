"""Tests the embedded model's pairs, searches and ratings; every expected value can be read off the text."""

import dspy
import pytest

from kraq_dspy import make_lm
from kraq_dspy.embedded.pairs import factoid_pair, question_answer_pairs
from kraq_dspy.embedded.rewrite import keywords, rephrased, sub_questions
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import CheckResponse, RateGroundedness, RateRelevance, RateStandAlone

FILM = "Ed Wood (film)\nEd Wood is a film by Tim Burton. It was loved. Johnny Depp stars in it."


def test_every_sentence_is_in_an_answer_and_answers_stand_alone() -> None:
    pairs = question_answer_pairs(FILM)
    assert [pair["answer"] for pair in pairs] == [
        "Ed Wood (film): Ed Wood is a film by Tim Burton. It was loved.",
        "Ed Wood (film): Johnny Depp stars in it.",
    ]
    assert "Tim Burton" in pairs[0]["question"] or "Ed Wood" in pairs[0]["question"]
    assert all(pair["question"].endswith("?") for pair in pairs)


def test_a_passage_that_names_nothing_is_still_told() -> None:
    assert question_answer_pairs("it rained all day.") == [
        {"question": "What is this about?", "answer": "it rained all day."}
    ]
    assert question_answer_pairs("") == []


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who wrote Don Juan?", ["Who wrote Don Juan?"]),
        (
            "Who wrote Don Juan, and when was Ada Lovelace born?",
            ["Who wrote Don Juan?", "When was Ada Lovelace born?"],
        ),
        ("Who wrote Don Juan and what is it about?", ["Who wrote Don Juan and what is it about?"]),
        (
            "Which magazine was started first, Arthur's Magazine or First for Women?",
            [
                "Which magazine was started first: Arthur's Magazine?",
                "Which magazine was started first: First for Women?",
            ],
        ),
    ],
)
def test_a_question_is_split_where_each_part_names_something(question: str, parts: list[str]) -> None:
    assert sub_questions(question) == parts


def test_keywords_are_names_in_full_then_words_that_carry_meaning() -> None:
    question = "Who wrote the poem Don Juan before Ada Lovelace was born?"
    assert keywords(question) == ["Don Juan", "Ada Lovelace", "wrote", "poem", "born"]


def test_rephrasings_are_other_texts_within_their_limit() -> None:
    assert rephrased("Who wrote Don Juan?", 2) == ["Do you know who wrote Don Juan?", "Don Juan wrote?"]
    assert rephrased("Who wrote the poem Don Juan?", 3, 16) == ["Don Juan wrote", "Who wrote the"]


@pytest.mark.parametrize(
    ("passage", "question", "answer"),
    [
        ("Ed Wood is a 1994 film directed by Tim Burton.", "Who directed Ed Wood?", "Tim Burton"),
        ("it rained all day.", "What is this about?", "I do not know"),
    ],
)
def test_a_pair_is_the_question_of_a_passage_and_what_the_passage_answers(
    passage: str, question: str, answer: str
) -> None:
    assert factoid_pair(passage, lambda _, texts: [0.0] * len(texts)) == {"question": question, "answer": answer}


def test_what_it_cannot_judge_it_rates_by_shared_words_and_says_so() -> None:
    byron = "Lord Byron wrote Don Juan in Venice."
    with dspy.context(lm=make_lm(RoleSettings()), adapter=KraqAdapter()):
        rate = dspy.Predict(RateGroundedness)
        assert rate(question="Who wrote it?", answer="Lord Byron", passage="Lord Byron wrote.").groundedness == 5
        assert rate(question="Who wrote it?", answer="Mary Shelley", passage=byron).groundedness == 1
        check = dspy.Predict(CheckResponse)
        assert check(question="Who?", context=[byron], response="Lord Byron").valid == "yes"
        assert check(question="Who?", context=[byron], response="Mary Shelley").valid == "no"
        relevance = dspy.Predict(RateRelevance)(audience="poets", question="What is ink?")
        assert (relevance.relevance, relevance.evaluation) == (5, "Not judged.")
        assert dspy.Predict(RateStandAlone)(question="Why?").stand_alone == 1
