"""The language of a corpus is told by its plain texts alone, unless texts that only the model can tell could matter."""

import pytest

from kraq_dspy.language import told
from kraq_dspy.language.told import language_of, language_of_most, language_of_question

ENGLISH = "The cat sat on the mat, and the dog was with it in the garden of a friend."
GERMAN = "Der Zug hält in Bern und ist pünktlich, denn er fährt mit dem Plan der Bahn."
OPEN = "Bala Dokov traf Luvi Sarov Norburg Tarburg"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of which the model is asked; it calls all of them German."""
    texts: list[str] = []

    def likeliest(text: str, among: tuple[str, ...], at_least: float = 0.6) -> str:
        texts.append(text)
        return "de"

    monkeypatch.setattr(told, "_likeliest", likeliest)
    language_of.cache_clear()
    return texts


@pytest.mark.parametrize(
    ("texts", "language", "asks"),
    [
        ([ENGLISH, ENGLISH, OPEN], "en", False),
        ([ENGLISH, OPEN], "en", True),  # as many as the one that is plain: the first one counts
        ([GERMAN, ENGLISH, ENGLISH, OPEN], "de", True),
        ([GERMAN, ENGLISH, ENGLISH, ENGLISH, OPEN], "en", False),
        ([OPEN, OPEN, ENGLISH], "de", True),
        ([], "en", False),
        (["apt-get"], "en", False),
    ],
)
def test_the_model_is_asked_only_if_it_could_change_which_language_is_that_of_most(
    asked: list[str], texts: list[str], language: str, asks: bool
) -> None:
    assert language_of_most(texts) == language
    assert bool(asked) == asks
    language_of.cache_clear()


def test_russian_is_told_apart_from_its_neighbours_by_the_model(asked: list[str]) -> None:
    assert language_of("Поезд прибывает на станцию вовремя.") == "de"
    assert asked == ["Поезд прибывает на станцию вовремя."]
    language_of.cache_clear()


def test_a_language_whose_commonest_words_stand_thrice_as_often_as_another_s_needs_no_model(asked: list[str]) -> None:
    text = "Ja, der Hund des Müllers und die Katze des Wirts spielen mit dem Ball im Garten."  # "des" is French, too
    assert (language_of(text), asked) == ("de", [])


@pytest.mark.parametrize(
    ("question", "text", "language", "asks"),
    [
        ("Who signed Executive Order 10925?", ENGLISH, "en", False),
        ("Was ist der Plan der Bahn?", GERMAN, "de", False),
        ("Was ist der Plan der Bahn?", ENGLISH, "de", True),
        ("Executive Order 10925", ENGLISH, "de", True),
        ("Who signed Executive Order 10925?", OPEN, "de", True),
    ],
)
def test_a_question_in_the_plain_language_of_its_text_needs_no_model(
    asked: list[str], question: str, text: str, language: str, asks: bool
) -> None:
    assert (language_of_question(question, text), bool(asked)) == (language, asks)
