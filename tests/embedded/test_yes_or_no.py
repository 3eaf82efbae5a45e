"""A "yes" or a "no" is said where the text plainly says it, in English alone; else the sentence stands alone."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import answer

PASSAGES = [
    "The ferry Alma does not sail on Sunday.",
    "The ferry Alma sails on Monday.",
    "The Lindholm museum was never opened in winter.",
    "The crane cannot lift fifty tons.",
    "Smoking is forbidden on the ferry Brita.",
    "Jonas Berg left the Berg Line in 1999.",
    "The lighthouse of Tarnvik was built in 1874.",
    "Dogs sleep on deck, but cats sleep in the cabin.",
    "The pool is heated if the sun shines.",
    "The bridge failed to carry the train.",
    "The library lends books without a card.",
    "The lock is closed on Friday.",
]


def blind(question: str, texts: Sequence[str]) -> Sequence[float]:
    return [0.0] * len(texts)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Does the ferry Alma sail on Sunday?", "No. The ferry Alma does not sail on Sunday."),
        ("Does the ferry Alma sail on Monday?", "Yes. The ferry Alma sails on Monday."),
        ("Was the museum opened in winter?", "No. The Lindholm museum was never opened in winter."),
        ("Can the crane lift fifty tons?", "No. The crane cannot lift fifty tons."),
        ("Was the lighthouse of Tarnvik built in 1874?", "Yes. The lighthouse of Tarnvik was built in 1874."),
    ],
)
def test_what_a_sentence_plainly_says_or_denies_is_so_or_not(question: str, said: str) -> None:
    assert answer(question, PASSAGES, blind) == said


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("Was the lighthouse of Tarnvik built in 1875?", "The lighthouse of Tarnvik was built in 1874."),
        ("Was the lighthouse of Lindholm built in 1874?", "The lighthouse of Tarnvik was built in 1874."),
        ("Is smoking allowed on the ferry Brita?", "Smoking is forbidden on the ferry Brita."),
        ("Did Jonas Berg leave the Berg Line?", "Jonas Berg left the Berg Line in 1999."),
        ("Do cats sleep on deck?", "Dogs sleep on deck, but cats sleep in the cabin."),
        ("Is the pool heated?", "The pool is heated if the sun shines."),
        ("Did the bridge carry the train?", "The bridge failed to carry the train."),
        ("Is the lock open on Friday?", "The lock is closed on Friday."),
        ("Does the library lend books with a card?", "The library lends books without a card."),
        ("Does the crane always lift fifty tons?", "The crane cannot lift fifty tons."),
    ],
)
def test_what_no_sentence_plainly_says_is_neither(question: str, alone: str) -> None:
    assert answer(question, PASSAGES, blind) == alone


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Warum kostet eine Karte zwölf Kronen?", "Eine Karte kostet zwölf Kronen."),
        ("Was ist das Bordrestaurant?", "Das Bordrestaurant ist ein Raum mit zwölf Tischen."),
        ("Will die Berg Line neue Schiffe kaufen?", "Die Berg Line will neue Schiffe kaufen."),
        ("Is de veerboot op zondag open?", "De veerboot is op zondag open."),
        ("Was het museum in de winter open?", "Het museum was in de winter open."),
        ("Had het museum in de winter gasten?", "Het museum had in de winter gasten."),
        ("Do continente o que o navio transporta?", "O navio transporta carros do continente para a ilha."),
        ("Has ido al puerto de Tarnvik?", "Ayer fuimos al puerto de Tarnvik con la barca."),
        ("Had je een kaartje voor de boot?", "Je had een kaartje voor de boot nodig."),
    ],
)
def test_a_question_in_another_language_is_none_that_wants_a_yes(question: str, passage: str) -> None:
    assert answer(question, [passage], blind) == passage


@pytest.mark.parametrize(
    ("question", "passage", "told"),
    [
        (
            "How is Debian pronounced?",
            "1.2 Pronouncing Debian\nUsers say deb-ee-n, as in English names.\n",
            "Users say deb-ee-n, as in English names.",
        ),
        (
            "Wie spricht man Debian aus?",
            "FAQ\nWie spricht man Debian aus und was bedeutet das?\nDer Name wird deb-ih-en gesprochen.",
            "Der Name wird deb-ih-en gesprochen.",
        ),
        ("What is Linux?", "FAQ\nOK, but what is Linux?!\nA kernel for many systems.", "A kernel for many systems."),
        (
            "What is Linux?",  # the passage ends where the next one has the text
            "FAQ\nMany systems share Linux as their kernel.\n1.3. OK, but what is Linux?",
            "Many systems share Linux as their kernel.",
        ),
        ("What does a ticket cost?", "# Ferry\n\n## What does a ticket cost?\n\nTwelve crowns.", "Twelve crowns."),
        ("What does a ticket cost?", "Ferry\nWhat does a ticket cost? Twelve crowns. It sails.", "Twelve crowns."),
    ],
)
def test_a_heading_is_no_answer_to_its_own_question(question: str, passage: str, told: str) -> None:
    assert answer(question, [passage], blind) == told


def test_a_text_of_short_lines_alone_is_answered_from_them() -> None:
    assert answer("Who is Jonas Berg?", ["People\nJonas Berg, founder\nMira Tolan, captain"], blind).endswith("founder")
