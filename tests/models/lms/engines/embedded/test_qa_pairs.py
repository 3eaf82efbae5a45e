"""The embedded model's pairs and sub-questions; every expected value can be read off the text."""

import pytest

from kraq_dspy.models.lms.engines.embedded.ask import question_answer_pairs
from kraq_dspy.models.lms.engines.embedded.rewrite import sub_questions

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
