"""Pronouns and short ways of asking, completed from what was said before."""

import tomllib
from pathlib import Path

import pytest

from kraq_dspy.embedded.follow_ups import complete_question, pronoun_for_nobody

LABEL = (
    "Question: Who founded Maybach Music Group?\n"
    "Answer: Rick Ross. Maybach Music Group is a record label founded by Rick Ross in 2009."
)
FILM = "Question: Who directed Ed Wood?\nAnswer: Tim Burton. Ed Wood is a 1994 American film directed by Tim Burton."
HOME = "Question: Where did Ada live?\nAnswer: London. Ada lived in London."


@pytest.mark.parametrize(
    ("said", "question", "complete"),
    [
        (LABEL, "Where was he born?", "Where was Rick Ross born?"),
        (LABEL, "When was it founded?", "When was Maybach Music Group founded?"),
        (LABEL, "What is his real name?", "What is Rick Ross' real name?"),
        (LABEL, "Which artists did the label sign?", "Which artists did Maybach Music Group sign?"),
        (LABEL, "And when?", "When did Rick Ross found Maybach Music Group?"),
        (FILM, "Who starred in it?", "Who starred in Ed Wood?"),
        (FILM, "When was he born?", "When was Tim Burton born?"),
        (FILM, "What was its budget?", "What was Ed Wood's budget?"),
        (HOME, "What did she do there?", "What did Ada do there?"),
        (HOME, "Is it large?", "Is London large?"),
    ],
)
def test_a_pronoun_gets_the_name_of_its_kind(said: str, question: str, complete: str) -> None:
    assert complete_question(question, [said]) == complete


def test_what_about_asks_the_earlier_question_of_another_thing() -> None:
    assert complete_question("What about Roc Nation?", [LABEL]) == "Who founded Roc Nation?"


COACH = "Question: Who is the coach of the Foxes?\nAnswer: Mia Dahl. The coach of the Foxes is Mia Dahl."
MATCHES = "Question: How many matches did the Ravens win?\nAnswer: 12. Team Ravens won 12 matches."
ORDER = "Question: Who signed Executive Order 10925?\nAnswer: "
CUP = "Question: Who won the cup in 1910?\nAnswer: Ida Berg."


@pytest.mark.parametrize(
    ("said", "question", "complete"),
    [
        (COACH, "And of the Ravens?", "Who is the coach of the Ravens?"),
        (COACH, "and the Ravens?", "Who is the coach of the Ravens?"),
        (COACH, "And the mill?", "Who is the coach of the mill?"),
        (COACH, "No, I meant the Ravens", "Who is the coach of the Ravens?"),
        (COACH, "Sorry, I mean the Ravens.", "Who is the coach of the Ravens?"),
        (COACH, "no, the Ravens", "Who is the coach of the Ravens?"),
        (COACH, "Not the Foxes, the Ravens", "Who is the coach of the Ravens?"),
        (COACH, "The Ravens, not the Foxes!", "Who is the coach of The Ravens?"),
        (COACH, "Was ist mit den Ravens?", "Who is the coach of the Ravens?"),
        (COACH, "Nein, ich meinte die Ravens", "Who is the coach of the Ravens?"),
        (COACH, "Et des Ravens ?", "Who is the coach of the Ravens?"),
        (MATCHES, "What about the Foxes?", "How many matches did the Foxes win?"),
        (MATCHES, "What about Oslo?", "How many matches did Oslo win?"),
        (CUP, "And in 1911?", "Who won the cup in 1911?"),
        (CUP, "How about 1912?", "Who won the cup in 1912?"),
        (LABEL, "Wo wurde er geboren?", "Wo wurde er geboren (Rick Ross)?"),
        (LABEL, "Où est-il né ?", "Où est-il né (Rick Ross)?"),
        (f"{ORDER}John F. Kennedy", "When did he sign it?", "When did John F. Kennedy sign it?"),
        (f"{ORDER}I do not know", "When did he sign it?", "When did he sign it?"),
    ],
)
def test_a_correction_and_a_follow_up_without_a_verb_ask_the_earlier_question(
    said: str, question: str, complete: str
) -> None:
    assert complete_question(question, [said]) == complete


def test_thanks_between_two_questions_are_no_question_before_the_second() -> None:
    thanks = "Question: ok great, thank you very much\nAnswer: You are welcome."
    assert complete_question("And of the Ravens?", [COACH, thanks]) == "Who is the coach of the Ravens?"


def test_the_latest_turn_is_meant() -> None:
    assert complete_question("When was he born?", [LABEL, FILM]) == "When was Tim Burton born?"
    assert complete_question("When was he born?", [FILM, LABEL]) == "When was Rick Ross born?"


@pytest.mark.parametrize(
    "question",
    ["Who wrote Don Juan?", "Who is there?", "What time is it?", "And who owns the mill?", "Wo liegt die Mühle?"],
)
def test_a_question_that_is_complete_or_not_understood_stays_as_it_is(question: str) -> None:
    assert complete_question(question, [LABEL]) == question


def test_without_anything_said_the_question_stays_as_it_is() -> None:
    assert complete_question("Where was he born?", []) == "Where was he born?"


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
        ("Who are the Hershey brothers?", ""),
    ],
)
def test_a_pronoun_that_stands_for_nobody_is_found(question: str, pronoun: str) -> None:
    assert pronoun_for_nobody(question) == pronoun


FOLLOW_UPS = [
    (turn["asked"], turn["answer"], then[0], then[1:])
    for turn in tomllib.loads(Path(__file__).with_name("follow_ups.toml").read_text("utf-8"))["turns"]
    for then in turn["then"]
]


@pytest.mark.parametrize(("asked", "answer", "then", "whole"), FOLLOW_UPS, ids=range(len(FOLLOW_UPS)))
def test_follow_ups_over_unlike_subjects(asked: str, answer: str, then: str, whole: list[str]) -> None:
    """Of 40, 4 were completed rightly before the rules."""
    assert complete_question(then, [f"Question: {asked}\nAnswer: {answer}"]) in whole


@pytest.mark.parametrize(
    ("asked", "then", "whole"),
    [
        ("How many beds does the Nord clinic have?", "What about Sund?", "How many beds does the Sund clinic have?"),
        ("How many beds does the Nord clinic have?", "Why?", "Why does the Nord clinic have beds?"),
        ("Is the museum open on Monday?", "And on Tuesday?", "Is the museum open on Tuesday?"),
        ("Who was the first mayor of Elmstad?", "And the second?", "Who was the second mayor of Elmstad?"),
        ("Where was Marta Lind born?", "And her brother?", "Where was Marta Lind's brother born?"),
        ("How long does the pass stay valid?", "And the visa?", "How long does the visa stay valid?"),
        ("What is the deadline for grants?", "and the fee?", "What is the fee for grants?"),
        ("Which rooms have a balcony?", "And a bath?", "Which rooms have a bath?"),
        ("Wann wurde die Mühle gebaut?", "Und die Brücke?", "Wann wurde die Brücke gebaut?"),
        ("When was the Tarn mill built?", "And then?", "And then?"),
        ("When was the Tarn mill built?", "And you?", "And you?"),
        ("What is Lord of the Rings about?", "Why?", "Why?"),
        ("Who painted the altar?", "how much?", "how much?"),
        ("What does the warranty cover?", "opening hours", "opening hours"),
    ],
)
def test_what_is_asked_again_is_a_whole_question(asked: str, then: str, whole: str) -> None:
    assert complete_question(then, [f"Question: {asked}\nAnswer: It is told."]) == whole
