"""The embedded reader asks questions whose answers stand in the text, and asks nothing where it cannot."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import answer
from kraq_dspy.embedded.testset import checks, facts, over_many, over_two, related, statements, whole_names
from kraq_dspy.language import word_forms

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


def test_a_question_within_a_text_is_read_in_that_text_alone() -> None:
    fox = "the fox and the geese\nthe fox came to a meadow . the old goose sang a long song in the evening ."
    wolf = "the wolf\nthe young wolf sang a long song in the evening ."

    def alike(question: str, texts: Sequence[str]) -> Sequence[float]:
        return [0.0] * len(texts)

    asked = "In “{}”, who sang a long song in the evening?"
    assert "goose" in answer(asked.format("the fox and the geese"), [wolf, fox], alike)
    assert "wolf" in answer(asked.format("the wolf"), [fox, wolf], alike)


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

    assert questions == [
        "What sold the Elbe Tunnel to Globex during the crisis of 1929?",
        "What sold the Elbe Tunnel to Globex?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The change of control prompted most of its Spanish Catholic population to leave Florida.",
        "Complexity theory is interested in how algorithms scale with an increase in the input size.",
    ],
)
def test_nothing_is_left_out_that_a_word_needs(text: str) -> None:
    """ "What prompted most of its population?" and "... scale with an increase?" break off."""
    for fact in facts.facts_in(text):
        assert fact.question.endswith(("leave Florida?", "in the input size?"))


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

    assert asked["question"] == "When was the American film director who directed Ed Wood born in Burbank?"
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

    assert asked == {"question": "Who was born first, Les McCann or Trent Reznor?", "answer": "Les McCann"}


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


def test_a_thing_that_several_passages_tell_of_is_asked_about_by_who_or_what() -> None:
    passages = ["Ada Lovelace was a mathematician.", "She met Charles Babbage.", "Ada Lovelace wrote notes."]

    assert over_many.question_for_many(passages, ["Ada Lovelace"]) == {
        "question": "Who was Ada Lovelace?",
        "nuggets": ["Ada Lovelace was a mathematician.", "Ada Lovelace wrote notes."],
    }
    assert over_many.question_for_many(passages, ["Charles Babbage"])["question"] == ""


def test_a_long_and_a_short_name_of_one_thing_are_not_asked_about_as_two() -> None:
    passages = ["The United States, or U.S., are large.", "The U.S. is the United States."]

    assert over_many.question_for_many(passages, ["U.S.", "United States"]) == {"question": "", "nuggets": []}


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


@pytest.mark.parametrize(
    ("name", "sentence", "is_whole"),
    [
        ("Atari 8", "It was made for the Atari 8-bit computers.", False),
        ("Ten Years", "Alvin Lee sang for Ten Years After.", False),
        ("Roberts", "The firm is Kohlberg Kravis Roberts & Co.", False),
        ("Coca", "It sells Coca - Cola.", False),
        ("Wales", "Casino is a town in New South Wales, Australia.", False),
        ("Jamaican", "Dawn Penn is a Jamaican singer.", False),
        ("Atari", "In Ohio, Atari sold it.", True),
        ("Rhine", "The Rhine's water is cold.", True),
        ("伦敦", "艾达住在伦敦市。", True),
    ],
)
def test_a_piece_of_a_longer_name_is_no_name(name: str, sentence: str, is_whole: bool) -> None:
    assert whole_names.stands_whole(name, sentence) is is_whole


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


def test_a_name_has_the_article_that_the_text_gives_it() -> None:
    passages = ["The Netherlands is a country in Europe.", "Amsterdam is the capital of the Netherlands."]

    asked = over_many.question_for_many(passages, ["Netherlands"])

    assert asked["question"] == "What is the Netherlands?"


def test_what_a_thing_is_is_asked_only_if_a_sentence_says_so() -> None:
    told = ["Ed Wood is a film of 1994.", "Tim Burton made Ed Wood in Ohio."]
    mentioned = ["They met at Ed Wood's house.", "Tim Burton admired Ed Wood."]

    assert over_many.question_for_many(told, ["Ed Wood"])["question"] == "What is Ed Wood?"
    assert over_many.question_for_many(mentioned, ["Ed Wood"])["question"] == ""


def test_a_place_that_only_says_where_another_lies_is_not_told_of() -> None:
    passages = ["The trio met at school in Belleville, Michigan.", "The firm is based in Detroit, Michigan."]

    assert over_many.question_for_many(passages, ["Michigan"])["question"] == ""


@pytest.mark.parametrize(
    ("phrase", "question"),
    [
        ("is a live album by Bill Evans", "Which live album is by Bill Evans?"),
        ("is a game devised by Ken St. Andre", "Which game was devised by Ken St. Andre?"),
        ("is a mansion and estate located in Sunbury", "Which mansion and estate is located in Sunbury?"),
        ("was a novel that won the Booker Prize", "Which novel won the Booker Prize?"),
        ("is the first EP by Stone Temple Pilots", "What is the first EP by Stone Temple Pilots?"),
        ("is a member of the National Hockey League", ""),  # of many
        ("are elaborate and have 10 courses", ""),  # who are?
        ("bought the territory in 1803", ""),  # which one?
    ],
)
def test_a_kind_is_asked_for_by_which_and_nothing_that_nobody_would_ask(phrase: str, question: str) -> None:
    assert facts.which_question("", False, phrase) == question


@pytest.mark.parametrize(
    "text",
    [
        "Use the left and right directional buttons to move between menus in 2012.",
        "Audio Language Information Displays detailed information about the current content of HD 1.",
        "Due to the product characteristics featured on Samsung Smart Hub, 4K shows.",
        "Modern plays were considered ephemeral and somewhat disreputable entertainments in 1590.",
        "The population of Ohio was 269,637 in 2010.",
        "Whereas sonar could not distinguish man - made debris on the sea bed of Loch Ness.",
    ],
)
def test_a_line_that_only_looks_like_a_statement_is_asked_nothing(text: str) -> None:
    assert facts.facts_in(text) == []


def test_an_article_is_small_within_a_question() -> None:
    assert [fact.question for fact in facts.facts_in("The Museum of Tarnvik was opened in 1954.") if fact.asked_of] == [
        "When was the Museum of Tarnvik opened?"
    ]


def test_another_clause_does_not_get_into_when_something_was_done() -> None:
    asked = facts.facts_in("Acme School was founded in 1963 by Globex and has today about 200 students.")

    assert [fact.question for fact in asked if fact.asked_of] == ["When was Acme School founded by Globex?"]


def test_the_frame_of_a_web_page_is_not_asked_about_and_a_policy_is() -> None:
    said = "The Harrow harbor board uses cookies of Acme Metrics on its website."
    assert not facts.parsed_facts(f"Harrow harbor\n{said}")
    assert facts.parsed_facts(f"Privacy policy of Harrow\n{said}")


def test_what_may_be_so_is_not_asked_for() -> None:
    assert not [
        fact
        for fact in facts.parsed_facts("Salt water of the harbor may damage the iron lamps of Harrow.")
        if fact.question.startswith("What may damage")
    ]


def test_two_things_are_two_unless_one_name_is_in_the_other() -> None:
    assert related.are_two_things("Harrow", "Mira Tolan")
    assert not related.are_two_things("Mira Tolan", "Tolan")
    assert not related.are_two_things("Tolan", "Mira Tolan")
