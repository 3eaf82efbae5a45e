"""A short answer is a whole value of what was asked, the thing that the text decides for, or none at all."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import UNKNOWN, answer


def similar(_: str, texts: Sequence[str]) -> list[float]:
    return [0.0] * len(texts)


PASSAGES = {
    "bridge": ["Die Brücke gehört Ida Holm. Der Brückenbau wurde am 3. März 1907 beendet. Danach kam niemand."],
    "firms": ["Firms\nHolm & Co. Ltd. moved to Varna in Nov. 1911. Berg Bros. Inc. sells rope, nets, etc."],
    "fares": [
        "Fares\nTicket: Adult; Single: 12 crowns; Return: 20 crowns\nTicket: Child; Single: 6 crowns; Return: 9 crowns"
    ],
    "towers": [
        "Towers\nThe Holm tower is taller than the Lind tower, but the Lind tower is older than the Holm tower."
    ],
    "choirs": ["Choirs\nThe leader of the Larks is Nils Brandt; the leader of the Finches is Ida Holm."],
    "mill": ["Lind Mills made 310 barrels in 1911, 420 barrels in 1912 and 290 barrels in 1913."],
    "school": ["School\nThe harvest fair begins on 3 October 2024. The gate is locked at 18:00."],
    "gallery": ["Gallery\nThe portrait of Ida Holm was drawn by Otto Lind in Varna."],
    "dam": ["Dam\nThe dam cost 2.5 billion crowns. The gate cost 3.20 crowns per metre."],
    "stove": ["Stove\nThe stove weighs 14.5kg. Its hose is 2m 40cm long. It uses 1.8kW. The plate is 30×40 cm."],
}


@pytest.mark.parametrize(
    ("text", "question", "begins"),
    [
        ("bridge", "Wann wurde der Brückenbau beendet?", "3. März 1907. Der Brückenbau wurde am 3. März 1907 beendet."),
        ("firms", "What does Berg Bros. sell?", "Berg Bros. Inc. sells rope, nets, etc."),
        ("firms", "When did Holm & Co. Ltd. move to Varna?", "Nov. 1911. Holm & Co. Ltd. moved to Varna in Nov. 1911."),
        ("fares", "How much is a return ticket of an adult?", "20 crowns."),
        ("fares", "How much is a single ticket of a child?", "6 crowns."),
        ("choirs", "Who is the leader of the Finches?", "Ida Holm."),
        ("choirs", "Who is the leader of the Larks?", "Nils Brandt."),
        ("mill", "How many barrels did Lind Mills make in 1912?", "420."),
        ("mill", "In which year did Lind Mills make 290 barrels?", "1913."),
        ("dam", "How much did the dam cost?", "2.5 billion crowns."),
        ("stove", "How long is the hose of the stove?", "2m 40cm."),
        ("stove", "How much power does the stove use?", "1.8kW."),
        ("stove", "How much does the stove weigh?", "14.5kg."),
    ],
)
def test_a_value_is_whole_and_of_what_was_asked(text: str, question: str, begins: str) -> None:
    assert answer(question, PASSAGES[text], similar).startswith(begins)


@pytest.mark.parametrize(
    ("question", "text", "begins"),
    [
        ("How cold is the store room?", "The store room is -18 °C cold.", "-18 °C."),
        ("How cold is the store room?", "The store room is minus 18 degrees cold.", "Minus 18 degrees."),
        ("How much does the card cost?", "The card costs between 5 and 7 euros.", "Between 5 and 7 euros."),
        ("How many boats does the club have?", "The club has 10 to 12 boats.", "10 to 12."),
        ("How many boats does the club have?", "More than 40 boats are what the club has.", "More than 40 boats"),
        (
            "What is the temperature in Lurr?",
            "The temperature in Lurr lies between -5 and 7 °C.",
            "Between -5 and 7 °C.",
        ),
        ("How far is Lurr from Orr?", "Lurr is 5 km to 7 km from Orr.", "5 km to 7 km."),
        (
            "How much did the bridge cost?",
            "The bridge cost between $5 million and $7 million.",
            "Between $5 million and $7 million.",
        ),
        ("How many boats does the club have?", "The club grew from 10 to 12 boats.", "12."),
        ("When was the harbor built?", "The harbor was built shortly after 1904.", "Shortly after 1904."),
        ("When was the harbor built?", "The harbor was built between 1904 and 1911.", "Between 1904 and 1911."),
        ("In which year was the harbor built?", "The harbor was built before 1904.", "The harbor was built"),
        ("When was the harbor built?", "The harbor was built two weeks after 3 May 1904.", "The harbor was built"),
    ],
)
def test_a_value_keeps_its_sign_and_its_bounds(question: str, text: str, begins: str) -> None:
    assert answer(question, [text], similar).startswith(begins)


@pytest.mark.parametrize(
    ("question", "begins"),
    [
        ("Which tower is taller, the Lind tower or the Holm tower?", "The Holm tower"),
        ("Which tower is older, the Holm tower or the Lind tower?", "The Lind tower"),
        ("Is the Lind tower taller than the Holm tower?", "No."),
        ("Is the Holm tower taller than the Lind tower?", "Yes."),
    ],
)
def test_of_two_that_are_compared_the_text_decides(question: str, begins: str) -> None:
    assert answer(question, PASSAGES["towers"], similar).startswith(begins)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("fares", "How much is a monthly ticket of a child?"),
        ("choirs", "Who is the leader of the Robins?"),
        ("school", "When does the harvest fair end?"),
        ("school", "When does the spring fair begin?"),
        ("school", "When is the gate unlocked?"),
        ("gallery", "Who is the husband of Ida Holm?"),
    ],
)
def test_what_is_not_told_has_no_value(text: str, question: str) -> None:
    said = answer(question, PASSAGES[text], similar)
    assert said == UNKNOWN or said in " ".join(PASSAGES[text])


def test_two_are_compared_by_the_passages_that_have_their_names_for_titles() -> None:
    nearer = (
        "Peaks of Orr\nThe peak Holm Tagh stands higher than the peaks of Orr; the peak Lind Ata stands near Holm Tagh."
    )
    passages = [
        *[nearer.replace("Orr", place) for place in ("Orr", "Lurr", "Benna", "Varna", "Mell", "Leer", "Ulva")],
        "Lind Ata\nLind Ata is the second mountain of the north at 7509 m above the sea.",
        "Holm Tagh\nHolm Tagh is a mountain at 8163 m above the sea.",
    ]
    question = "Which peak stands higher, Lind Ata or Holm Tagh?"
    assert answer(question, passages, similar).startswith("Holm Tagh.")

    away = ["Lind Ata\nLind Ata is a peak 90 km from Orr.", "Holm Tagh\nHolm Tagh is a peak 40 km from Orr."]
    assert not answer(question, away, similar).startswith("Lind Ata.")


def test_a_word_with_a_wrong_letter_is_no_word_that_nothing_tells() -> None:
    passage = "Comb jellies\nThe phylum of the ctenophores has 150 species."
    assert "150" in answer("How many species of ctenohores are there?", [passage], similar)
    assert answer("How many species of gastropods are there?", [passage], similar) == UNKNOWN


def test_a_number_in_a_name_does_not_stand_for_the_name() -> None:
    assert answer("When was the Lark 4.1 built?", ["The Wren 4.1 was built in 1904."], similar) == UNKNOWN


@pytest.mark.parametrize(
    ("question", "passage", "begins"),
    [
        ("How many dairy cows does Lurr have?", "Lurr\nLurr has 3,100 dairy cattle and two mills.", "3,100."),
        (
            "Which dog is bred in Switzerland, the Holm hound or the Lind hound?",
            "Dogs\nThe Holm hound is a dog bred in the Swiss Alps. The Lind hound is a dog of Drenthe.",
            "The Holm hound",
        ),
    ],
)
def test_another_word_of_the_same_meaning_tells_it(question: str, passage: str, begins: str) -> None:
    assert answer(question, [passage], similar).startswith(begins)


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("How many dairy cows does Lurr have?", "Lurr\nLurr has 3,100 sheep and two mills."),
    ],
)
def test_a_word_of_another_meaning_does_not(question: str, passage: str) -> None:
    assert answer(question, [passage], similar) == UNKNOWN
