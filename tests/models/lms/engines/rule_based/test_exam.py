"""The embedded reader asks questions whose answers stand in the text, and asks nothing where it cannot."""

import pytest

from kraq_dspy.models.lms.engines.rule_based.exam import checks, facts, over_many, over_two, statements, word_forms

BURTON = "Tim Burton\nTim Burton is an American film director. He was born in Burbank in 1958."
WOOD = (
    "Ed Wood (film)\nEd Wood is a film. It was directed by Tim Burton in 1994. It won two Academy Awards for its cast."
)


def test_every_fact_of_a_passage_has_its_answer_in_it() -> None:
    asked = facts.facts_in(WOOD)

    assert ("When was Ed Wood directed by Tim Burton?", "1994") in [(one.question, one.answer) for one in asked]
    assert ("Which film was directed by Tim Burton in 1994?", "Ed Wood") in [(o.question, o.answer) for o in asked]
    assert all(one.answer in WOOD for one in asked)


def test_a_subject_that_only_points_elsewhere_is_not_asked_about() -> None:
    assert facts.facts_in("They were sold to the French Navy in 1901. This led to the War of 1902.") == []


def test_a_comma_inside_a_number_does_not_end_what_is_said() -> None:
    population = facts.facts_in("Burbank\nBurbank has a population of 103,340, as of 2010.")[0]
    assert (population.question, population.answer) == ("What is the population of Burbank?", "103,340")


def test_a_kind_is_named_where_another_word_only_contains_it() -> None:
    asked = facts.facts_in(
        "Springfield\nSpringfield is a city in Ohio. It has the biggest capacity of all ports in Ohio."
    )
    assert any(one.question.startswith("Which city has the biggest capacity") for one in asked)


def test_people_ask_with_fewer_words_than_texts_tell_with() -> None:
    questions = [
        one.question for one in facts.facts_in("Acme Ltd sold the Elbe Tunnel to Globex during the crisis of 1929.")
    ]

    assert "What sold the Elbe Tunnel to Globex during the crisis of 1929?" in questions
    assert "What sold the Elbe Tunnel to Globex?" in questions


def test_when_asks_with_the_verb_as_it_stands_in_questions() -> None:
    [fact] = [one for one in facts.facts_in("Nina Simone moved to Liberia in 1974.") if one.asked_of]

    assert (fact.question, fact.answer) == ("When did Nina Simone move to Liberia?", "1974")


@pytest.mark.parametrize(
    ("past", "base"),
    [("moved", "move"), ("stopped", "stop"), ("died", "die"), ("studied", "study"), ("created", "create"),
     ("visited", "visit"), ("wrote", "write"), ("treated", "treat"), ("released", "release"), ("below", "")],
)  # fmt: skip
def test_the_base_of_a_past_form(past: str, base: str) -> None:
    assert word_forms.base_of(past) == base


def test_a_question_of_two_steps_does_not_name_what_links_them() -> None:
    asked = over_two.question_over_two(WOOD, BURTON, "Tim Burton")

    assert asked["question"] == "When was the American film director that Ed Wood was directed by born in Burbank?"
    assert asked["answer"] == "1958"


def test_what_a_name_is_said_to_be_stands_for_it() -> None:
    album = "High Rise\nHigh Rise is the first EP by Stone Temple Pilots."
    band = "Stone Temple Pilots\nStone Temple Pilots are a rock band.\nStone Temple Pilots is a band from San Diego."

    asked = over_two.question_over_two(album, band, "Stone Temple Pilots")

    assert (asked["question"], asked["answer"]) == ("What is the first EP by the band from San Diego?", "High Rise")


def test_things_of_one_kind_make_a_list_with_the_words_between_kind_and_name() -> None:
    passages = [
        "Mrs Dalloway\nMrs Dalloway is a novel by Virginia Woolf.",
        "Orlando\nOrlando is a novel by Virginia Woolf.",
        "Virginia Woolf\nVirginia Woolf was a writer.",
    ]

    asked = over_many.question_for_list(passages, "Virginia Woolf")

    assert asked == {"question": "Which novels are by Virginia Woolf?", "items": ["Mrs Dalloway", "Orlando"]}


def test_a_definition_without_a_plain_kind_makes_no_list() -> None:
    passages = ["Opel\nOpel is the largest in Rome.", "Fiat\nFiat is the oldest in Rome."]

    assert over_many.question_for_list(passages, "Rome") == {"question": "", "items": []}


def test_of_two_with_a_year_the_earlier_is_the_answer() -> None:
    one, two = "Les McCann\nLes McCann was born in 1935.", "Trent Reznor\nTrent Reznor was born in 1965."

    asked = over_two.comparison(one, two, ["Les McCann", "Trent Reznor"])

    assert asked == {"question": "Which was born first, Les McCann or Trent Reznor?", "answer": "Les McCann"}


def test_another_language_is_asked_nothing() -> None:
    text = "Der Zug\nDer Zug wurde in Bern von der Bahn im Jahr 1990 gebaut und ist nicht mehr in Betrieb."

    assert facts.fact_about(text) == {"question": "", "answer": ""}


def test_a_passage_answers_where_one_sentence_has_the_question_and_the_passage_the_answer() -> None:
    assert checks.is_answered("Which film was directed by Tim Burton?", "Ed Wood", WOOD)
    assert not checks.is_answered("Which film was directed by Tim Burton?", "Big Fish", WOOD)
    assert not checks.is_answered("Which novel did Melville write about whales?", "Ed Wood", WOOD)


def test_what_most_passages_tell_of_together_is_asked_with_a_sentence_of_each() -> None:
    passages = [
        "Mrs Dalloway\nIt is a novel by Virginia Woolf. The Hogarth Press published it.",
        "Orlando\nVirginia Woolf wrote it. The Hogarth Press of Virginia Woolf published it in 1928.",
        "The Hogarth Press\nIt was founded by Virginia Woolf in 1917.",
    ]

    asked = over_many.question_for_many(passages, ["Virginia Woolf", "Hogarth Press", "Orlando"])

    assert asked["question"] == "How is Virginia Woolf related to Hogarth Press?"
    assert asked["nuggets"] == [
        "The Hogarth Press of Virginia Woolf published it in 1928.",
        "It was founded by Virginia Woolf in 1917.",
    ]


def test_a_thing_that_several_passages_tell_of_is_asked_about_by_who_or_what() -> None:
    passages = ["Ada Lovelace was a mathematician.", "She met Charles Babbage.", "Ada Lovelace wrote notes."]

    assert over_many.question_for_many(passages, ["Ada Lovelace"]) == {
        "question": "Who is Ada Lovelace?",
        "nuggets": ["Ada Lovelace was a mathematician.", "Ada Lovelace wrote notes."],
    }
    assert over_many.question_for_many(passages, ["Charles Babbage"])["question"] == ""


def test_a_long_and_a_short_name_of_one_thing_are_not_asked_about_as_two() -> None:
    passages = ["The United States, or U.S., are large.", "The U.S. is the United States."]

    assert over_many.question_for_many(passages, ["U.S.", "United States"]) == {"question": "", "nuggets": []}
    assert facts.related_in(passages[0], ["U.S.", "United States"]) == []


def test_a_common_word_that_begins_a_heading_is_asked_nothing_and_is_nobody() -> None:
    """ "Index Settings" has the form of a first and a last name."""
    passages = [
        "Index Settings\nEvery index keeps the settings that made it. Settings come from kraq.toml.",
        "Models\nSettings name the model of each role. Other settings have defaults.",
    ]
    assert over_many.question_for_many(passages, ["Settings"]) == {"question": "", "nuggets": []}

    questions = [
        fact.question for fact in facts.facts_in("Index Settings held the 12 settings of every stage in the index.")
    ]
    assert questions[0] == "What held the 12 settings of every stage in the index?"
    assert not any("Who" in question for question in questions)


def test_a_person_whose_last_name_is_a_common_word_is_somebody() -> None:
    text = "Al Green sang of green fields. He was born in Arkansas."
    assert statements.is_somebody("Al Green", text)
    assert statements.is_somebody("Green", text)
    assert not statements.is_somebody("Al Green", "Al Green is shown next to a green field.")


def test_a_passage_without_a_plain_statement_is_asked_how_two_of_its_names_are_related() -> None:
    passage = "Yesterday, so it seems, nobody but Ada Lovelace had met Charles Babbage there."

    asked = facts.fact_about(passage, ["Ada Lovelace", "Charles Babbage"])

    assert asked["question"] == "How is Ada Lovelace related to Charles Babbage?"
    assert asked["answer"] == passage.rstrip(".")
