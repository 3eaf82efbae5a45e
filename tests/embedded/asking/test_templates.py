"""The embedded model asks what a heading announces or a sentence defines; every question can be checked by eye."""

import pytest

from kraq_dspy.embedded.asking.headings import Heading, announced_question, headings_of, subject_of, topic_question
from kraq_dspy.embedded.asking.templates import definition, question_about, question_about_theme
from kraq_dspy.language.text import NOTHING_NAMED
from kraq_dspy.language.told import language_of


@pytest.mark.parametrize(
    ("summary", "question"),
    [
        ("Ed Wood and Tim Burton\nEd Wood is a film directed by Tim Burton.", "Who directed Ed Wood?"),
        ("Ed Wood\nEd Wood is a 1994 American film directed and produced by Tim Burton.", "Who directed Ed Wood?"),
        ("Oslo and Norway\nOslo is the capital of Norway.", "What is Oslo?"),
        ("Peter W. Smith\nPeter W. Smith (May 4, 1936 – May 14, 2017) was a banker.", "Who was Peter W. Smith?"),
        ("Ann Lee\nAnn Lee (born 1974) is vice president of Acme.", "Who is Ann Lee?"),
        ("Kabalas and Klezmer\nThe Kabalas were a band that most loved Klezmer.", "Who were the Kabalas?"),
        ("Felicia Day\nFelicia Day is an American actress known for The Guild.", "Who is Felicia Day?"),
        ("Snow Patrol\nSnow Patrol are a band from Dundee.", "Who are Snow Patrol?"),
        ("Cypripedium\nCypripedium are the lady's slippers, hardy orchids.", "What are Cypripedium?"),
        ("Cypripedium\nCypripedium, the lady's slippers, are a genus of orchids.", "What are Cypripedium?"),
        ("Beagle Dogs\nBeagle Dogs are a breed of small hound.", "What are Beagle Dogs?"),
        ("Lemurs\nLemurs are a group of primates.", "What are Lemurs?"),
        ("Orchids\nOrchids are a family of plants.", "What are Orchids?"),
        ("Abba\nAbba are a Swedish pop group.", "Who are Abba?"),
        ("Abba\nAbba are a group of four singers.", "Who are Abba?"),
        ("Arsenal\nArsenal are a football club in London.", "Who are Arsenal?"),
        ("The Beatles\nThe Beatles were the most popular musicians of the age.", "Who were the Beatles?"),
        ("Boomiverse and Big Boi\nBoomiverse is the third album by American rapper Big Boi.", "What is Boomiverse?"),
        ("Acme and Globex\nAcme acquired Globex in 1990.", "What is said about Acme and Globex?"),
        ("Ann Lee and Acme\nAnn Lee is the sister of a founder. She left.", "Who is Ann Lee?"),
        ("Ann Lee and Acme\nAnn Lee is the sister of Acme.", "What is said about Ann Lee and Acme?"),  # who or what?
        ("Bracco\nThe Bracco Italiano (; ]) is a breed of dog.", "What is the Bracco Italiano?"),
    ],
)  # fmt: skip
def test_a_question_asks_what_the_text_says_a_name_is(summary: str, question: str) -> None:
    assert question_about(summary) == question


@pytest.mark.parametrize(
    "sentence",
    [
        "She was the first woman president of the Royal Institution.",
        "Another formation is a group in Leeds.",
        "Results are a mixed bag.",
        "Ada met Bob in London.",
        "Press Select is a the of.(",
    ],
)
def test_what_names_nothing_defines_nothing(sentence: str) -> None:
    defined = definition(sentence)
    assert defined is None or defined.name == "Press Select"


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Connecting an Antenna", "How do I connect an antenna?"),
        ("Installing and running an app", "How do I install and run an app?"),
        ("2.1 Setting up your TV", "How do I set up my TV?"),
        ("How to bake bread", "How do I bake bread?"),
        ("Create a branch", "How do I create a branch?"),
        ("Read Before Using Bixby", "What should I know before using Bixby?"),
        ("If HDMI is set to Off", "What if HDMI is set to off?"),
        ("The TV Won't Connect", "What can I do if the TV won't connect?"),
        ("I can't hear the sound", "What can I do if I can't hear the sound?"),
        ("Which model answers", "Can you explain which model answers?"),
        ("Is indie gaming the future?", "Is indie gaming the future?"),
    ],
)
def test_a_heading_becomes_the_question_of_who_looks_for_it(heading: str, question: str) -> None:
    passage = f"{heading}\nAn antenna and the tv connect when they are off, running and using it."
    assert announced_question(headings_of(passage)[0], [passage]) == question


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("Migrating to Vite 8", "Run npm create vite. " + "See how Vite works. " * 6,
         "How do I migrate to Vite 8?"),
        ("Closing the Gap Between Build and Dev", "We build it with dev tools.",
         "How do I close the gap between build and dev?"),
        ("Using Environment Instances", "Each environment has an instance.",
         "How do I use environment instances?"),
        ("Why Vite", "Servers were slow.", "Why Vite?"),
        ("Parking policy", "Staff park in the north garage.", ""),
        ("Building plugins", "You may build your own plugins.", "How do I build plugins?"),
        ("Operating instructions", "Keep them dry.", ""),
    ],
)  # fmt: skip
def test_a_heading_keeps_capitals_of_names_alone_and_a_noun_is_no_order(heading: str, text: str, question: str) -> None:
    assert announced_question(Heading(heading), [f"{heading}\n{text}"]) == question


def test_what_a_text_is_about_is_not_put_behind_another_place_of_the_kind() -> None:
    passage = "Imports\nYou import a worker with a constructor."
    assert announced_question(Heading("Import with Constructors"), [passage], "with Vite") == (
        "How do I import with constructors?"
    )


@pytest.mark.parametrize(
    ("heading", "passage"),
    [
        ("Finding Nemo", "Finding Nemo is a 2003 American film."),
        ("I'm Not There (film)", "It is told of six people."),
        ("Ring of Fire", "It burns."),
        ("Singing the Blues", "A song of two singers."),  # no verb of instructions
        ("How Did the Astros Cheat", "They did."),
        ("From a trot to a marathon, celebrations that aren’t a dinner", "Ten ideas."),
        # comments of code that read as headings of Markdown
        ("If one of the disks that are going to be automatically partitioned", "contains an old volume"),
        ("If you set $QUILT_PATCHES", "export it"),
        ("Use this version if you don't want lintian to fail the build", "exit 0"),
    ],
)
def test_names_and_headlines_announce_no_question(heading: str, passage: str) -> None:
    assert announced_question(Heading(heading), [passage]) == ""


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        (Heading("Connection notes"), "What is said about connection notes?"),
        (Heading("Training", title="Small models"), "What does “Small models” say about training?"),
        (Heading("Judge dismisses the lawsuit filed against Valve"),
         "What is “Judge dismisses the lawsuit filed against Valve” about?"),
        (Heading("We know more about the moon than the sea"),
         "What is “We know more about the moon than the sea” about?"),
        (Heading("About the guide"), "What is said about the guide?"),
        (Heading("From DSPy", title="Guide"), "What is “From DSPy” about?"),
        (Heading("Watch great noir"), "What is “Watch great noir” about?"),
    ],
)  # fmt: skip
def test_other_headings_are_asked_about_plainly(heading: Heading, question: str) -> None:
    assert topic_question(heading, ["The connection notes say: training."]) == question


def test_files_numbers_and_headings_of_every_text_are_none() -> None:
    passage = "Guide to Oslo\n# Introduction\nText.\n## `setup.py`\n## 12\n## Getting around\nBy tram.\n## [run]\n"
    assert headings_of(passage) == [Heading("Getting around", "Guide to Oslo")]
    assert headings_of("Guide to Oslo\n## Connect with us\nWrite to us.\n## Log in\n") == [Heading("Guide to Oslo")]
    assert headings_of("a-christmas-carol.txt\nMarley was dead.") == []
    assert headings_of("Marley was dead: to begin with.") == []


def test_a_question_says_what_the_passages_are_about_where_most_say_it() -> None:
    passages = ["Using the guide\nOpen it on the TV.", "Using the apps\nStart one on your TV, then rest. The TV waits."]
    assert subject_of(passages) == "on the TV"
    assert question_about("Guide\nThe guide lists what is on.", passages[:1] + passages) in (
        "How do I use the guide on the TV?",
        "How do I use the apps on the TV?",
    )


def test_headings_of_the_passages_go_before_names() -> None:
    passage = "Resetting Smart Hub\nSmart Hub is a menu. Reset Smart Hub in the settings."
    assert question_about("Smart Hub\nSmart Hub is a menu.", [passage]) == "How do I reset Smart Hub?"
    assert question_about("Smart Hub\nSmart Hub is a menu.") == "What is Smart Hub?"


def test_a_theme_is_what_most_passages_share() -> None:
    passages = ["Old Rome lies far. Anna Smith saw Old Rome.", "They love Old Rome.", "Bert Jones left Old Rome."]
    assert "Old Rome" in question_about_theme(passages)


def test_what_names_nothing_is_asked_what_it_is_about() -> None:
    assert question_about("it rained all day.") == NOTHING_NAMED


@pytest.mark.parametrize(
    "text", ["Der Rhein ist ein Fluss, und Basel ist mit dem Rhein gewachsen.", "北京是中国的首都。曹雪芹生活在北京。"]
)
def test_other_languages_are_asked_nothing(text: str) -> None:
    assert question_about(text) == NOTHING_NAMED


def test_a_language_is_told_by_its_script_or_several_of_its_words() -> None:
    texts = ("京都はどこですか", "ไทย", "مرحبا", "नमस्ते", "el puerto de la ciudad", "La Liga", "")
    assert [language_of(text) for text in texts] == ["ja", "th", "ar", "hi", "es", "en", "en"]


def test_a_heading_that_ran_into_its_sentence_is_no_part_of_the_name() -> None:
    told = "Ed Wood (film) Ed Wood is a 1994 American film directed and produced by Tim Burton."
    assert question_about(f"Ed Wood\n{told}") == "Who directed Ed Wood?"
    defined = definition("New York New York is a city of New York State.")
    assert defined is not None
    assert defined.name == "New York"
