"""Questions in other languages are answered by the words that carry meaning, or not at all."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.answer import UNKNOWN, answer

FERRY_DE = """Fähre
Die Fähre Alma ist ein Schiff der Berg Line. Die Fähre braucht vierzig Minuten. Eine Karte kostet zwölf Kronen.
Das heißt, dass die Fähre im Sommer nach dem Plan der Stadt fährt. Die Fähre wurde 1987 von Jonas Berg gegründet."""
FERRY_FR = """Ferry
Le ferry Alma est un navire de la Berg Line. Le ferry met quarante minutes. Un billet coûte douze couronnes.
C'est pour cela que le ferry est dans le port de la ville. Le ferry a été fondé par Jonas Berg en 1987."""
FERRY_ES = """Ferry
El ferry Alma es un barco de la Berg Line. El ferry tarda cuarenta minutos. Un billete cuesta doce coronas.
Por eso el ferry está en el puerto de la ciudad. El ferry fue fundado por Jonas Berg en 1987."""


def no_opinion(_: str, texts: Sequence[str]) -> list[float]:
    return [0.0] * len(texts)


@pytest.mark.parametrize(
    ("passage", "question", "expected"),
    [
        (FERRY_DE, "Was kostet eine Karte?", "Zwölf Kronen. Eine Karte kostet zwölf Kronen."),
        (FERRY_DE, "Wer hat die Fähre gegründet?", "Jonas Berg. Die Fähre wurde 1987 von Jonas Berg gegründet."),
        (FERRY_FR, "Combien coûte un billet ?", "Un billet coûte douze couronnes."),
        (FERRY_FR, "Qu'est-ce que le ferry Alma ?", "Le ferry Alma est un navire de la Berg Line."),
        (FERRY_FR, "Par qui le ferry a-t-il été fondé ?", "Le ferry a été fondé par Jonas Berg en 1987."),
        (FERRY_ES, "¿Cuánto cuesta un billete?", "Un billete cuesta doce coronas."),
        (FERRY_ES, "¿Por quién fue fundado el ferry?", "El ferry fue fundado por Jonas Berg en 1987."),
    ],
)
def test_small_words_of_the_language_bring_no_other_sentence_along(passage: str, question: str, expected: str) -> None:
    assert answer(question, [passage], no_opinion) == expected


@pytest.mark.parametrize(
    ("passage", "question"),
    [
        (FERRY_DE, "Wie heißt die Hauptstadt von Peru?"),  # "heißt" is in the text
        (FERRY_DE, "Ist die Fähre verboten?"),  # "Fähre" is in nearly every sentence, and nothing else of it in any
        (FERRY_FR, "Comment s'appelle la capitale du Pérou ?"),
        (FERRY_ES, "¿Cómo se llama la capital del Perú?"),
    ],
)
def test_what_the_text_does_not_tell_is_not_known(passage: str, question: str) -> None:
    assert answer(question, [passage], no_opinion) == UNKNOWN


def test_a_question_what_a_thing_is_goes_to_the_sentence_that_says_so() -> None:
    passage = "Werkzeuge\nDie Optionen zeigt Lintian. Mit Lintian prüft man. Lintian ist ein Programm für Pakete."
    assert answer("Was ist Lintian?", [passage], no_opinion) == "Lintian ist ein Programm für Pakete."


def test_a_question_of_the_text_is_no_answer() -> None:
    passage = "Ferry\nWhy does Alma sail on Sunday? Alma sails on Sunday for the fair."
    assert answer("Why does Alma sail on Sunday?", [passage], no_opinion) == "Alma sails on Sunday for the fair."


def test_what_a_colon_announces_comes_along() -> None:
    passage = "Ferry\nThe ferry Alma carries:\n\ncars and bicycles of the town.\n\nIt is old."
    assert "cars and bicycles" in answer("What does the ferry Alma carry?", [passage], no_opinion)
