"""The embedded model asks about what a sentence tells; every question can be checked against its sentence."""

import pytest

from kraq_dspy.models.lms.engines.embedded.ask import question_about, question_about_theme
from kraq_dspy.models.lms.engines.embedded.clause import (
    ask_about_act,
    ask_about_thing,
    ask_for_role,
    ask_for_subject,
    ask_the_authors,
)


@pytest.mark.parametrize(
    ("summary", "question"),
    [
        ("Acme and Globex\nAcme, a maker of anvils, acquired Globex in 1990.", "When did Acme acquire Globex?"),
        ("Acme and Globex\nAcme, a maker of anvils, acquired Globex.", "How did Acme acquire Globex?"),
        ("Ed Wood and Tim Burton\nEd Wood is a film directed by Tim Burton.", "Who directed Ed Wood?"),
        ("Acme and Anna Smith\nAcme was founded by Anna Smith in Rome.", "Who founded Acme?"),
        ("Oslo and Norway\nOslo is the capital of Norway.", "What is Oslo the capital of?"),
        ("Ann Lee and Acme\nAnn Lee, the founder of Acme, left.", "Who is the founder of Acme?"),
        ("Acme and Ann Lee\nAcme boss Ann Lee left the town.", "Who is Acme's boss?"),
        ('Ann Lee and Acme\n"Acme will win," Ann Lee said.', "What did Ann Lee say about Acme?"),
        ("Saints and Giants\nThe Saints beat the Giants.", "Who beat the Giants?"),
        ("Bert Jones and Oldtown\nBert Jones was mayor of Oldtown.", "Who was mayor of Oldtown?"),
        (
            "Bowl, Tigers and Wolfpack\nThe Bowl is a football game played annually by the Tigers and the Wolfpack.",
            "Which football game is played annually by the Tigers and the Wolfpack?",
        ),
        ("Peter W. Smith\nPeter W. Smith (May 4, 1936 – May 14, 2017) was a banker.", "Who is Peter W. Smith?"),
        (
            "Ann Lee, Bob Ray, Cy Fox and Di Poe\nAnn Lee and Bob Ray and Cy Fox and Di Poe (of Rome) sat. "
            "Ed Wu met Cy Fox in May.",
            "When did Ed Wu meet Cy Fox?",
        ),
        # Where nothing is told of two names: what the name is, before "How are X and Y connected?"
        (
            "Kabalas and Klezmer\nThe Kabalas were a band that most loved Klezmer.",
            "Who were the Kabalas?",
        ),
        (
            "Suresh Peters, Tamil and Minnal\nSuresh Peters is a music director and rapper for films in India.",
            "Who is Suresh Peters?",
        ),
        ("Boomiverse and DJ Dahi\nBoomiverse is an album of note, with DJ Dahi: 12 songs.", "What is Boomiverse?"),
        (
            "Hayden and Thornhill\nPaul Desser, who records as Hayden, is a Canadian singer from Thornhill.",
            "Who is Paul Desser?",
        ),
        (
            "Malachi Throne\nHe is the son of Malachi Throne and Judith Merians.",
            "Who is the son of Malachi Throne and Judith Merians?",
        ),
        (
            'Veep and HBO\n"Veep" is a comedy television series, starring Julia Louis-Dreyfus, that is on HBO.',
            "Which comedy television series stars Julia Louis-Dreyfus?",
        ),
        ("Cardinals and Charlie Strong\nThe Cardinals were led by Charlie Strong.", "Who led the Cardinals?"),
        (
            "King Edward and Hunt\nIn 1906, King Edward and King Alfonso of Spain became Patrons of the Hunt.",
            "Which king became Patrons of the Hunt?",
        ),
        # The text says neither why nor how, and the subject may be somebody or something.
        (
            "West McLean and Virginia\nWest McLean is a community in Virginia. West McLean uses ZIP code 22102.",
            "What is West McLean?",
        ),
        ("HIV and CRISPR\nThe trial (of HIV) began. Could CRISPR cure HIV someday?", "Could CRISPR cure HIV someday?"),
        (
            "Snips\nHere we use the Snips dataset, which is small.",
            "Why do the authors use the Snips dataset?",
        ),
        (
            "Ada Lovelace and Acme\nAda Lovelace wrote the first program for Acme.",
            "Who wrote the first program for Acme?",
        ),
        (
            "Oslo and Rome\nOslo (like Rome) sold it. Bob Ray met Jo Fox in 1990.",
            "When did Bob Ray meet Jo Fox?",
        ),
    ],
)
def test_a_question_asks_about_what_the_text_states(summary: str, question: str) -> None:
    assert question_about(summary) == question


@pytest.mark.parametrize(
    ("part", "question"),
    [
        ("Acme bought Globex because it was cheap.", "Why did Acme buy Globex?"),
        ("In 1990, Acme also opened a shop in Rome.", "Why did Acme open a shop in Rome?"),
        ("Acme was founded in June 1919.", "When was Acme founded?"),
        ("Acme has been sold to Globex.", "Why has Acme been sold to Globex?"),
        ("Acme faces the judges of Rome.", "Why does Acme face the judges of Rome?"),
        ("We find that Acme achieves better scores on TREC.", "How does Acme achieve better scores on TREC?"),
        ("Acme is a company.", ""),
        ("Acme said that Globex failed.", ""),
        ("Acme models the weather of Rome.", "Why does Acme model the weather of Rome?"),
        ("Acme models outperform others.", ""),
        ("Acme bought it.", ""),
        ("Acme, bought by Globex, left.", ""),
        ("Few knew Acme, which bought the mills of Rome, and left.", "How did Acme buy the mills of Rome?"),
        ("Acme, who is a cat, left.", ""),
    ],
)
def test_a_sentence_is_turned_round_where_it_tells_what_a_name_does(part: str, question: str) -> None:
    assert ask_about_act(part, "Acme", "Acme") == question


@pytest.mark.parametrize(
    ("part", "question"),
    [
        ("We then trained the model on Snips.", "How did the authors train the model on Snips?"),
        ("To save time, we use the data of IWSLT.", "Why do the authors use the data of IWSLT?"),
        ("We find that Acme is larger.", ""),
        ("We bought our shop in Rome.", ""),
        ("Acme trained the model on Snips.", ""),
    ],
)
def test_what_authors_tell_of_themselves_is_asked_of_the_authors(part: str, question: str) -> None:
    assert ask_the_authors(part) == question


@pytest.mark.parametrize(
    ("part", "question"),
    [
        ("The first link between Acme and Globex was established in 2016.",
         "When was the first link between Acme and Globex established?"),
        ("The company's plan raised the hopes of Acme.", "Why did the company's plan raise the hopes of Acme?"),
        ("The shop owned by Acme closed.", ""),
        ("The film stars Ann Lee and Bert Jones.", ""),
        ("The plan that Acme made was dropped.", ""),
        ("Our shop was sold to Acme.", ""),
    ],
)  # fmt: skip
def test_a_sentence_about_anything_else_is_turned_round_where_its_subject_is_plain(part: str, question: str) -> None:
    assert ask_about_thing(part) == question


def test_the_subject_is_asked_for_by_its_kind() -> None:
    assert (
        ask_for_subject("The Kaw is the river of Kansas.", "Kaw", "Which river")
        == "Which river is the river of Kansas?"
    )
    assert ask_for_role("Nigerian artist Ann Lee left.", "Ann Lee", "Nigerian") == ""
    assert ask_for_role("Oldtown mayor Ann Lee left.", "Ann Lee", "the Saints") == ""


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        ("Rank and Acme\nRank the results of Acme; the rank counts. Acme met Globex.", "Rank"),
        ("STAVE ONE OF FIVE\nSTAVE ONE OF FIVE. Marley met Scrooge in London.", "STAVE"),
        ("Acme-Tweet and Acma-Tweet\nAcme-Tweet and Acma-Tweet met Globex.", "Acma-Tweet"),
    ],
)
def test_a_question_names_no_common_word_and_nothing_in_two_spellings(summary: str, wrong: str) -> None:
    assert wrong not in question_about(summary)


def test_forms_differ_with_what_is_told_and_the_same_text_gets_the_same_question() -> None:
    statements = ("was mayor of Rome", "left Rome in 1990", "met Bert Jones", "and Rome", "is known for Rome")
    summaries = [f"Ann Lee and Rome\nAnn Lee {each}." for each in statements]
    questions = [question_about(summary) for summary in summaries]
    assert len(set(questions)) >= 4
    assert questions == [question_about(summary) for summary in summaries]


def test_a_theme_is_what_most_passages_share() -> None:
    passages = ["Old Rome lies far. Anna Smith saw Old Rome.", "They love Old Rome.", "Bert Jones left Old Rome."]
    assert "Old Rome" in question_about_theme(passages)


def test_a_question_names_three_things_at_the_most_and_none_twice() -> None:
    question = question_about(
        "Ann Lee, Bob Ray and Cy Fox\nAnn Lee, Bob Ray, Cy Fox, Di Poe, Ed Wu and Lee sat with Ray."
    )
    assert sum(name in question for name in ("Ann Lee", "Bob Ray", "Cy Fox", "Di Poe", "Ed Wu")) <= 3
    assert question.count("Lee") <= 1
