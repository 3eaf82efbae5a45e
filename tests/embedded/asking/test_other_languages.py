"""Questions in other languages come from headings and definitions, and from nothing else."""

import pytest

from kraq_dspy.embedded.asking.headings import Heading, announced_question, headings_of
from kraq_dspy.embedded.asking.other_languages import asked_in, question_of_heading
from kraq_dspy.embedded.asking.statements import whether
from kraq_dspy.embedded.asking.templates import NOTHING_NAMED, question_about


@pytest.mark.parametrize(
    ("language", "heading", "question"),
    [
        ("de", "Wie spricht man Debian aus?", "Wie spricht man Debian aus?"),
        ("de", "Pakete mit APT installieren", "Wie kann man Pakete mit APT installieren?"),
        ("de", "Einrichtung des Netzwerks", "Wie geht man bei der Einrichtung des Netzwerks vor?"),
        ("es", "Instalar un paquete", "¿Cómo se puede instalar un paquete?"),
        ("es", "Configuración de la red", "¿Cómo se hace la configuración de la red?"),
        ("fr", "Créer une page de manuel", "Comment créer une page de manuel ?"),
        ("fr", "Utilisation de l’espace disque", "Comment se fait l'utilisation de l’espace disque ?"),
        ("pt", "Instalar pacotes", "Como instalar pacotes?"),
        ("it", "Installare un pacchetto", "Come installare un pacchetto?"),
        ("nl", "Een pakket installeren", "Hoe kun je een pakket installeren?"),
        ("ru", "Установка пакетов", "Как выполняется установка пакетов?"),
        ("pl", "Instalacja pakietów", "Jak przebiega instalacja pakietów?"),
        ("ja", "APT の設定", "APT の設定はどのように行いますか？"),
        ("ja", "Debian とは何ですか？", "Debian とは何ですか？"),
        ("de", "Kapitel 2", ""),
        ("ru", "Глава 2", ""),
        ("de", "Das Dateisystem", ""),
        ("fr", "NOM", ""),
    ],
)
def test_a_heading_is_asked_about_where_its_form_says_how(language: str, heading: str, question: str) -> None:
    assert question_of_heading(language, heading).casefold() == question.casefold()


@pytest.mark.parametrize(
    ("language", "sentence", "question"),
    [
        ("de", "APT ist ein Werkzeug für Pakete.", "Was ist APT?"),
        ("de", "Das ist ein Werkzeug.", ""),
        ("es", "Git es un sistema de control.", "¿Qué es Git?"),
        ("fr", "Le noyau est un programme.", "Qu'est-ce que le noyau ?"),
        ("fr", "Comme XML est un format, il est lu.", ""),
        ("pt", "O Debian é um sistema.", "O que é o Debian?"),
        ("it", "Il kernel è un programma.", "Che cos'è il kernel?"),
        ("nl", "De kernel is een programma.", "Wat is de kernel?"),
        ("ru", "Debian — это операционная система.", "Что такое Debian?"),
        ("ru", "Это — программа.", ""),
        ("ru", "Первая — установка базовой системы.", ""),
        ("pl", "Debian to system operacyjny.", "Co to jest Debian?"),
        ("pl", "Wymaga to uprawnień administratora.", ""),
        ("pl", "TEMATY to lista stron podręcznika.", ""),
        ("ja", "Debianは自由なオペレーティングシステムです。", "Debianとは何ですか？"),
        ("ja", "それらは伝統的に自由なシステムです。", ""),
    ],
)
def test_what_a_sentence_defines_is_asked_about(language: str, sentence: str, question: str) -> None:
    assert asked_in(language, [], [sentence]) == question


@pytest.mark.parametrize(
    ("page", "question"),
    [
        (
            "NAZWA\n       dirname - usuwa przyrostek nazwy pliku\n\nOPIS\n       Wyświetla nazwę.",
            "Do czego służy dirname?",
        ),
        ("Nazwa\n   mlabel - nadaje etykietę dysku, która jest nazwą tego dysku w systemie.", "Do czego służy mlabel?"),
        ("ИМЯ\n       fsck, e2fsck — проверить и восстановить файловую систему.", "Для чего служит fsck?"),
        ("NAME\n       ls - list the contents of the directories that are named.", "What does ls do?"),
        ("NAME\n       ls - zeigt den Inhalt der Ordner, die man ihm nicht ohne Grund nennt.", "Wozu dient ls?"),
    ],
)
def test_a_page_of_a_manual_is_asked_what_its_thing_is_for(page: str, question: str) -> None:
    assert question_about(f"page.1\n{page}", [f"page.1\n{page}"]) == question


ENGLISH = (
    "Bash\nOptions of the Bash are told with the shell that is started by them. Many options of the Bash are for it."
)


def test_english_in_a_corpus_of_another_language_is_asked_about_only_where_it_says_what_to_ask() -> None:
    assert question_about(ENGLISH, [ENGLISH]).startswith("What is said about")
    assert question_about(ENGLISH, [ENGLISH], language_of_corpus="pl") == NOTHING_NAMED
    manual = "Connecting an antenna\nConnect an antenna to the set with the cable that came with it."
    assert question_about(manual, [manual], language_of_corpus="pl") == "How do I connect an antenna?"


def test_what_is_in_no_language_is_not_asked_about_in_english() -> None:
    footer = "dirname.1\nZOBACZ TEŻ  basename(1)  GNU coreutils 9.1  styczeń 2024  ZGŁASZANIE BŁĘDÓW"
    assert question_about(footer, [footer]) == NOTHING_NAMED
    assert question_about("mkfs.8\nmkfs(8)", ["mkfs.8\nmkfs(8)"]) == NOTHING_NAMED


def test_nothing_is_asked_where_nothing_is_known() -> None:
    told = "Weise und Ihnen\nDie Weise, in der wir es Ihnen und den anderen nicht gesagt haben, ist nicht zu sehen."
    assert question_about(told, [told]) == NOTHING_NAMED
    assert (
        question_about("Глава 2\nМы уже сказали вам об этом.", ["Глава 2\nМы уже сказали вам об этом."])
        == NOTHING_NAMED
    )


@pytest.mark.parametrize(
    "menu", ["Sign up for our newsletter", "Privacy Policy", "Cookie settings", "Related articles"]
)
def test_a_menu_is_no_heading(menu: str) -> None:
    assert headings_of(f"{menu}\n\nWe sail.") == []


def test_a_noun_in_capitals_is_no_order() -> None:
    for text in ("REPORT ON TC’S KEY ACTIVITIES", "Report on the key activities"):
        assert announced_question(Heading(text), []) == ""
    assert announced_question(Heading("Report a problem"), ["to report a problem"]) == "How do I report a problem?"


@pytest.mark.parametrize(
    "sentence",
    [
        "Ra instorm are much severe than a gale of the sea.",
        "The last year have seen less rain than the years of the war.",
        "Ferries is associated with the harbour of the old town.",
    ],
)
def test_a_statement_whose_verb_does_not_agree_is_not_turned(sentence: str) -> None:
    assert whether(sentence) == ""


def test_statements_are_turned_only_where_it_is_allowed() -> None:
    passage = "Prednisone is superior to dexamethasone in mild asthma of children."
    assert question_about(passage, [f"\n{passage}"]).startswith("Is prednisone superior")
    assert not question_about(passage, [f"\n{passage}"], turns_statements=False).startswith("Is ")
