"""A German sentence gives a short answer where it plainly says it, and none where two would do."""

import pytest

from kraq_dspy.embedded.short_answers.german import is_told_in_german, read_german, short_in_german


def short(question: str, sentence: str, above: str = "") -> str:
    asked = read_german(question)
    return "" if asked is None else short_in_german(asked, sentence, above)


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Wann wurde der Fährbetrieb eingestellt?", "Der Fährbetrieb wurde am 5. Mai 1934 eingestellt.", "5. Mai 1934"),
        ("Wann war die Einstellung des Betriebs?", "Der Betrieb wurde am 5. Mai 1934 eingestellt.", "5. Mai 1934"),
        ("Wann beginnt die Messe?", "Die Messe beginnt um 9:30 Uhr und endet um 12 Uhr.", "9:30 Uhr"),
        ("Wann endet die Messe?", "Die Messe beginnt um 9:30 Uhr und endet um 12 Uhr.", "12 Uhr"),
        ("Wie viele Boote hat der Verein?", "Der Verein hat rund 1.200 Mitglieder und 14 Boote.", "14"),
        ("Was kostet eine Karte?", "Eine Karte kostet 7,50 Euro, ermäßigt 4 Euro.", "7,50 Euro"),
        ("Wie hoch ist die Miete?", "Die Miete beträgt ca. 640 Euro.", "ca. 640 Euro"),
        ("Wann fährt die Fähre?", "Die Fähre fährt um 8 Uhr, um 13 Uhr und um 17 Uhr.",
         "8 Uhr, um 13 Uhr und um 17 Uhr"),
        ("Wer leitet die Werft?", "Die Werft wird von Dr. Heike Sander geleitet.", "Dr. Heike Sander"),
        ("Wo wohnt der Wirt?", "Der Wirt wohnt im 2. Stock und isst zu Mittag.", "im 2. Stock"),
        ("Wie viele Boote kamen 1924 nach Emden?", "Im Sommer 1924 kamen 4 Boote nach Emden.", "4"),
        ("In welchem Jahr wurde die Uhr gebaut?", "Die Uhr wurde am 3. Mai 1623 gebaut.", "1623"),
    ],
)  # fmt: skip
def test_the_value_of_the_part_that_has_the_words_is_given(question: str, sentence: str, expected: str) -> None:
    assert short(question, sentence) == expected


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Wie kalt ist der Kühlraum?", "Der Kühlraum ist -18 °C kalt.", "-18 °C"),
        ("Wie kalt ist der Kühlraum?", "Der Kühlraum ist minus 18 Grad kalt.", "minus 18 Grad"),
        ("Wie lang ist der Weg?", "Der Weg ist 2–3 km lang.", "2–3 km"),
        ("Wie lang ist der Weg?", "Der Weg ist 2 bis 3 km lang.", "2 bis 3 km"),
        ("Was kostet die Karte?", "Die Karte kostet zwischen 5 und 7 Euro.", "zwischen 5 und 7 Euro"),
        ("Wie viele Boote hat der Verein?", "Der Verein hat 10 bis 12 Boote.", "10 bis 12"),
        ("Wie schnell ist das Boot?", "Das Boot ist bis zu 40 km/h schnell.", "bis zu 40 km/h"),
        ("Wann wurde der Hafen gebaut?", "Der Hafen wurde vor 1904 gebaut.", "vor 1904"),
        ("In welchem Jahr wurde der Hafen gebaut?", "Der Hafen wurde kurz nach 1904 gebaut.", ""),
        ("Wie viel Prozent der Häfen sind offen?", "12,5 % der Häfen sind offen.", "12,5 %"),
        ("Wie viele Boote hat der Verein?", "Der Verein hat weder 12 noch 13 Boote.", ""),
    ],
)
def test_a_value_keeps_its_sign_and_its_bounds(question: str, sentence: str, expected: str) -> None:
    assert short(question, sentence) == expected


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Wann wurde der Verein gegründet?", "Der Verein wurde in Ulm gegründet und zog 1902 um."),  # the other's year
        ("Wann schließt das Bad?", "Das Bad öffnet um 8 Uhr."),
        ("Wann öffnet das Bad?", "Das Bad öffnet um 8 Uhr; in Ulm öffnet ein Bad um 10 Uhr."),  # which?
        ("Wann fährt die letzte Fähre?", "Die Fähre fährt um 8 Uhr."),
        ("Was kostet die Karte?", "Die Karte kostet nicht 4 Euro."),
        ("Wie viele Boote hat der Verein?", "Der Verein hat 1.200 Mitglieder."),
        ("Warum schließt das Bad?", "Das Bad schließt um 8 Uhr."),
    ],
)
def test_no_value_is_given_that_the_sentence_does_not_plainly_say(question: str, sentence: str) -> None:
    assert short(question, sentence) == ""


def test_what_half_of_the_words_never_stand_for_is_not_told() -> None:
    passages = ["Die Leiterin des Vereins heißt Ilse Wagner."]
    born, called = read_german("Wann wurde die Leiterin geboren?"), read_german("Wie heißt die Leiterin?")
    assert born is not None
    assert called is not None
    assert (is_told_in_german(born, passages), is_told_in_german(called, passages)) == (False, True)
