"""A question that points to an earlier one is searched together with it."""

import pytest

from kraq_dspy.language.follow_ups import complete_question, pronoun_for_nobody

COACH = "Question: Who is the coach of the Foxes?\nAnswer: Mia Dahl. The coach of the Foxes is Mia Dahl."
THANKS = "Question: ok great, thank you very much\nAnswer: You are welcome."


@pytest.mark.parametrize(
    "question",
    [
        "And of the Ravens?",
        "what about the Ravens?",
        "No, I meant the Ravens",
        "Where was she born?",
        "When did they win it?",
        "Since when?",
        "Is it large?",
        "Warum?",
    ],
)
def test_a_question_that_points_stands_behind_the_last_one(question: str) -> None:
    assert complete_question(question, ["Question: Who sings?\nAnswer: Ida.", COACH, THANKS]) == (
        f"Who is the coach of the Foxes? {question}"
    )


@pytest.mark.parametrize(
    "question", ["Who wrote Don Juan?", "Which painter cut off his ear?", "Where does the river Arve end?", "1911?"]
)
def test_a_question_that_says_what_it_is_about_stays_as_it_is(question: str) -> None:
    assert complete_question(question, [COACH]) == question


def test_without_a_question_before_it_a_question_stays_as_it_is() -> None:
    assert complete_question("Where was he born?", []) == "Where was he born?"
    assert complete_question("Where was he born?", [THANKS]) == "Where was he born?"


@pytest.mark.parametrize(
    ("question", "pronoun"),
    [
        ("Where was he born?", "he"),
        ("When did she die?", "she"),
        ("And who was her husband?", "her"),
        ("Which painter cut off his ear?", ""),
        ("Where did Byron meet his wife?", ""),
        ("What did he say to Byron?", ""),
        ("Who wrote it?", ""),
    ],
)
def test_a_pronoun_that_stands_for_nobody_is_found(question: str, pronoun: str) -> None:
    assert pronoun_for_nobody(question) == pronoun
