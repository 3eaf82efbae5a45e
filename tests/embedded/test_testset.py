"""The embedded reader asks questions whose answers stand in the text, and asks nothing where it cannot."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import answer
from kraq_dspy.embedded.testset import checks, facts, over_many
from kraq_dspy.language import word_forms

WOOD = (
    "Ed Wood (film)\nEd Wood is a film. It was directed by Tim Burton in 1994. It won two Academy Awards for its cast."
)


def test_a_question_within_a_text_is_read_in_that_text_alone() -> None:
    fox = "the fox and the geese\nthe fox came to a meadow . the old goose sang a long song in the evening ."
    wolf = "the wolf\nthe young wolf sang a long song in the evening ."

    def alike(question: str, texts: Sequence[str]) -> Sequence[float]:
        return [0.0] * len(texts)

    asked = "In “{}”, who sang a long song in the evening?"
    assert "goose" in answer(asked.format("the fox and the geese"), [wolf, fox], alike)
    assert "wolf" in answer(asked.format("the wolf"), [fox, wolf], alike)


@pytest.mark.parametrize(
    ("past", "base"),
    [("moved", "move"), ("stopped", "stop"), ("died", "die"), ("studied", "study"), ("created", "create"),
     ("visited", "visit"), ("wrote", "write"), ("treated", "treat"), ("released", "release"), ("below", "")],
)  # fmt: skip
def test_the_base_of_a_past_form(past: str, base: str) -> None:
    assert word_forms.base_of(past) == base


def test_other_languages_are_asked_nothing() -> None:
    german = "Der Zug\nDer Zug wurde in Bern von der Bahn im Jahr 1990 gebaut und ist nicht mehr in Betrieb."
    assert facts.fact_about(german) == {"question": "", "answer": ""}


def test_a_passage_answers_where_one_sentence_has_the_question_and_the_passage_the_answer() -> None:
    assert checks.is_answered("Which film was directed by Tim Burton?", "Ed Wood", WOOD)
    assert not checks.is_answered("Which film was directed by Tim Burton?", "Big Fish", WOOD)
    assert not checks.is_answered("Which novel did Melville write about whales?", "Ed Wood", WOOD)


def test_what_most_passages_tell_together_is_asked_with_a_sentence_of_each() -> None:
    passages = [
        "Road salt damages the old harbor bridge of Orrin every winter.",
        "The ferry to Lurr sails at noon.",
        "Heavy trucks weaken the old harbor bridge by day.",
    ]

    asked = over_many.question_for_many(passages, ["Orrin", "old harbor bridge"])

    assert asked == {"question": "What affects the old harbor bridge?", "nuggets": [passages[0], passages[2]]}
    assert over_many.question_for_many(passages, ["Orrin", "ferry"]) == {"question": "", "nuggets": []}


def test_a_long_and_a_short_name_of_one_thing_are_not_asked_about_as_two() -> None:
    passages = ["The United States, or U.S., are large.", "The U.S. is the United States."]

    assert over_many.question_for_many(passages, ["U.S.", "United States"]) == {"question": "", "nuggets": []}


def test_a_common_word_that_begins_a_heading_is_asked_nothing() -> None:
    """ "Index Settings" has the form of a first and a last name."""
    passages = [
        "Index Settings\nEvery index keeps the settings that made it. Settings come from kraq.toml.",
        "Models\nSettings name the model of each role. Other settings have defaults.",
    ]
    assert over_many.question_for_many(passages, ["Settings"]) == {"question": "", "nuggets": []}


def test_a_passage_without_a_plain_statement_is_asked_nothing() -> None:
    passage = "Yesterday, so it seems, nobody but Ada Lovelace had met Charles Babbage there."

    assert facts.fact_about(passage, ["Ada Lovelace", "Charles Babbage"]) == {"question": "", "answer": ""}


def test_a_fact_is_asked_by_the_parse_of_its_sentence_where_the_text_is_english() -> None:
    text = "The frequent storms of the northern coast destroyed the old wooden bridge of Orrin in 1871. It rained."
    german = "Die Stürme der nördlichen Küste zerstörten im Jahr 1871 die alte hölzerne Brücke von Orrin. Es regnete."

    assert {(fact.question, fact.answer) for fact in facts.parsed_facts(text)} >= {
        ("What destroyed the old wooden bridge of Orrin in 1871?", "The frequent storms of the northern coast"),
        ("What did the frequent storms of the northern coast destroy in 1871?", "the old wooden bridge of Orrin"),
    }
    assert facts.parsed_facts(german) == []


def test_no_piece_of_a_name_is_asked_about() -> None:
    passages = [
        "Blue Ribbon\nBlue Ribbon converted them to the Atari 8-bit in Ohio.",
        "Cops\nCops was ported to the Atari 8-bit in Ohio.",
    ]

    assert over_many.question_for_many(passages, ["Atari 8"])["question"] == ""
    assert over_many.question_for_many(passages, ["Atari 8", "Ohio"])["question"] == ""


def test_a_last_name_is_not_asked_about_since_it_may_be_anybody_s() -> None:
    passages = ["Chad Gray was born in Ohio. Gray sang in Peru.", "Gray wrote in Peru. Chad Gray was born."]

    assert over_many.question_for_many(passages, ["Gray"])["question"] == ""


def test_a_place_that_only_says_where_another_lies_is_not_told_of() -> None:
    passages = ["The trio met at school in Belleville, Michigan.", "The firm is based in Detroit, Michigan."]

    assert over_many.question_for_many(passages, ["Michigan"])["question"] == ""


def test_what_may_be_so_is_not_asked_for() -> None:
    assert not [
        fact
        for fact in facts.parsed_facts("Salt water of the harbor may damage the iron lamps of Harrow.")
        if fact.question.startswith("What may damage")
    ]
