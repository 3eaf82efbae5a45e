"""Pairs that a reader tells apart, or takes for one, at a glance."""

import pytest

from kraq_dspy.programs.qa_search.near_miss import contradiction


@pytest.mark.parametrize(
    ("question", "stored", "reason"),
    [
        ("Who won the cup in 1998?", "Who won the cup in 2002?", "another number: 1998, 2002"),
        ("Can I take two pills?", "Can I take 3 pills?", "another number: 2, 3"),
        ("What is the fee for 1,000 euros?", "What is the fee for 100 euros?", "another number"),
        ("Which foods should I eat?", "Which foods should I not eat?", "one is negated"),
        ("Why can't I log in?", "Why can I log in?", "one is negated"),
        ("How do I enable alerts?", "How do I disable alerts?", "opposites: enable, disable"),
        ("What is the highest peak?", "What is the lowest peak?", "opposites: highest, lowest"),
        ("When was Turing born?", "Where was Turing born?", "one asks for a time, the other for a place"),
        ("What is the capital of France?", "What is the capital of Spain?", "another name: France, Spain"),
        ("Who wrote A Christmas Tree?", "Who wrote A Christmas Carol?", "another name: Tree, Carol"),
        ("How common is hepatitis B?", "How common is hepatitis C?", "another name: B, C"),
    ],
)
def test_a_contradiction_is_named_from_both_sides(question: str, stored: str, reason: str) -> None:
    named = contradiction(question, stored)
    assert named is not None
    assert named.startswith(reason)
    assert contradiction(stored, question) is not None


@pytest.mark.parametrize(
    ("question", "stored"),
    [
        ("Who won the cup in 1998?", "who won the 1998 cup"),
        ("What costs 1,000 euros?", "What costs 1000 euros?"),
        ("What year was he born?", "When was he born?"),
        ("Isn't Paris big?", "Is Paris big?"),
        ("My card is not working", "Why is my card broken?"),
        ("Do you know whether or not it rains?", "Does it rain?"),
        ("What is the population of the UK?", "What is the population of the United Kingdom?"),
        ("Is Germany old?", "Is the German state old?"),
        ("capital of france", "What is the capital of France?"),
        ("Welche Stadt ist groß?", "Wie heißt die große Ortschaft?"),
        ("是不是很大？", "是很大吗？"),
        ("HOW TALL IS MOUNT EVEREST", "What is the height of Everest?"),
        ("", ""),
    ],
)
def test_other_words_for_the_same_are_none(question: str, stored: str) -> None:
    assert contradiction(question, stored) is None
    assert contradiction(stored, question) is None


def test_of_stories_with_a_question_in_them_only_numbers_and_names_are_compared() -> None:
    story = "I have had a sore throat for two days, it is red and it hurts when I drink, and it does not go away. {}"
    other = "My throat has been red and sore for 2 days now, drinking hurts, and it is there all the time. {}"
    question, stored = story.format("What helps?"), other.format("What can I take?")
    assert contradiction(question, stored) is None
    assert contradiction(question, question.replace("it does not go away", "it is there all the time")) is None
    assert contradiction(question, stored.replace("2 days", "3 days")) == "another number: 2, 3"
