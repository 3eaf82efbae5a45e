"""Words meet whatever the case that they are written in: in searches, and where questions are read."""

import pytest

from kraq_dspy._internal.folding import folded
from kraq_dspy.asset.store.vectors.points import words_of
from kraq_dspy.embedded.answer import answer
from kraq_dspy.language.text import content_words


@pytest.mark.parametrize(
    ("capitals", "small"),
    [
        ("KANTİN NE ZAMAN AÇILIR", "kantin ne zaman açılır"),
        ("IŞIK İLKER", "ışık ilker"),
        ("ΠΟΤΕ ΑΝΟΙΓΕΙ Η ΚΑΝΤΙΝΑ", "πότε ανοίγει η καντίνα"),
        ("ΟΔΟΣ", "οδός"),
        ("STRASSE", "Straße"),
        ("ECOLE", "École"),
    ],
)
def test_capitals_and_small_letters_are_one(capitals: str, small: str) -> None:
    assert folded(capitals) == folded(small)
    assert words_of(capitals) == words_of(small)
    assert content_words(capitals) == content_words(small)


def test_letters_that_are_others_stay_so() -> None:
    assert folded("й") != folded("и")
    assert folded("が") != folded("か")


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("KANTİN NE ZAMAN AÇILIR?", "Kantin öğlen açılır."),
        ("ΠΟΤΕ ΑΝΟΙΓΕΙ Η ΚΑΝΤΙΝΑ;", "Η καντίνα ανοίγει το μεσημέρι."),
        ("WO LIEGT DIE HAUPTSTRASSE?", "Die Hauptstraße liegt am Fluss."),
        ("WHEN DOES THE CANTEEN OPEN?", "The canteen opens at noon."),
    ],
)
def test_a_question_in_capitals_is_answered(question: str, passage: str) -> None:
    assert answer(question, [passage], lambda _, texts: [0.0] * len(texts)).endswith(passage)
