"""A statement that stands alone becomes the question whether it is so; what leans on other sentences does not."""

import pytest

from kraq_dspy.embedded.asking.statements import asked_whether, whether
from kraq_dspy.embedded.asking.templates import asks_of_something, question_about


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("Carotid stenosis (CS) was a risk factor for stroke.", "Was carotid stenosis a risk factor for stroke?"),
        ("However, prednisone is not superior to dexamethasone in asthma, although many say so.",
         "Is prednisone superior to dexamethasone in asthma?"),
        ("Our data suggest that substitution with androgens improves sexual function in women.",
         "Does substitution with androgens improve sexual function in women?"),
        ("Female citizens of Sami municipalities have a low risk of breast cancer.",
         "Do female citizens of Sami municipalities have a low risk of breast cancer?"),
        ("Hyperbaric oxygenation has been recommended as adjuvant therapy.",
         "Has hyperbaric oxygenation been recommended as adjuvant therapy?"),
        ("A Work under CC0 may be protected by neighboring rights.",
         "Can a Work under CC0 be protected by neighboring rights?"),
        ("You may not remove your notices from the source.", "Can I remove my notices from the source?"),
        ("Manchester United are out of Europe altogether.", "Are Manchester United out of Europe altogether?"),
    ],
)  # fmt: skip
def test_a_statement_is_turned_round(sentence: str, question: str) -> None:
    assert whether(sentence) == question


@pytest.mark.parametrize(
    "sentence",
    [
        "It is a risk factor for stroke in men.",  # what?
        "The company is a leader in its market.",  # which?
        "Palau is one of the few places in Micronesia where dugongs live.",  # what of it?
        "The study was a trial of two drugs.",
        "Patients in the control group were older than others.",
        "Serum samples were collected from twelve centres in Norway.",  # how a study was made
        "Aspirin is cheap and ibuprofen is a common drug.",  # two verbs
        "Aspirin is a drug that these people take.",
        "Mr Smith said the bank is a victim of fraud.",  # somebody says it
        "Seventeen children were born in the north of Norway.",
        "United are playing the Vikings at home tonight.",
        "Is aspirin a common drug against pain?",
        "Aspirin is a drug",  # a title
        "The Cratchits were as still as statues in one corner, and sat looking up.",
        "The process of KANE is illustrated in Figure FIGREF2 in detail.",
        "You should get your employer or your school, if any, to sign a disclaimer.",
        "You may convey a covered work in any medium if you keep the notices.",  # a condition
        "The Document may include Warranty Disclaimers next to the notice.",
        "Caesars has a bonus for new players and runs offers for others.",
        "Aspirin is good.",  # too short to be a question of anybody's
        "The version is a work under the terms of the License under.",
    ],
)
def test_what_does_not_stand_alone_is_not_asked(sentence: str) -> None:
    assert whether(sentence) == ""


def test_a_word_keeps_its_capital_only_where_it_has_one_elsewhere() -> None:
    passages = ["Bixby is a voice assistant of Samsung phones. The TV knows Bixby."]
    assert asked_whether([], passages) == "Is Bixby a voice assistant of Samsung phones?"
    assert asked_whether(["Mitochondria are the power stations of all cells."], []) == (
        "Are mitochondria the power stations of all cells?"
    )


def test_a_name_of_the_title_keeps_its_capital() -> None:
    passages = ["Celestine\nCelestine is portrayed as a strict disciplinarian."]
    assert asked_whether([], passages) == "Is Celestine portrayed as a strict disciplinarian?"


def test_the_sentence_that_shares_most_is_asked_about_and_the_present_before_the_past() -> None:
    passage = (
        "Halofantrine was a cause of sudden death. Malaria is a disease of the tropics."
        " Quinine is a drug against malaria. Drugs against malaria cost little."
    )
    assert asked_whether([], [passage]) == "Is quinine a drug against malaria?"
    assert asked_whether([], ["He slept."]) == ""


def test_a_passage_is_asked_whether_before_it_is_asked_what_is_said_of_it() -> None:
    passage = (
        "Acme and Globex\nThe merger of Acme and Globex is a risk for the whole market of Norway. Acme met Globex."
    )
    assert question_about("Acme and Globex\nAcme met Globex.", [passage]) == (
        "Is the merger of Acme and Globex a risk for the whole market of Norway?"
    )
    assert question_about("Acme and Globex\nAcme met Globex.") == "What is said about Acme and Globex?"


@pytest.mark.parametrize(
    ("question", "knows"),
    [
        ("Is quinine a drug against malaria?", True),
        ("What is “Judge dismisses the lawsuit filed against Valve” about?", True),
        ("What is “Article 1, section 2” about?", False),
        ("What does “Guide” say about training?", False),
        ("What is said about Acme?", False),
    ],
)
def test_a_headline_is_asked_about_and_a_label_left_to_a_model(question: str, knows: bool) -> None:
    assert asks_of_something(question) is knows
