"""Statements of German, French, Chinese and Japanese are asked in their own language, or not at all."""

import pytest

from kraq_dspy.embedded.asking.clozes.asking import clozes_in
from kraq_dspy.embedded.asking.clozes.chinese import asked_in as asked_in_chinese
from kraq_dspy.embedded.asking.clozes.french import asked_of as asked_of_french
from kraq_dspy.embedded.asking.clozes.german import asked_of as asked_of_german
from kraq_dspy.embedded.asking.clozes.japanese import asked_in as asked_in_japanese


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("Im Jahr 1904 eröffnete die Stadt den Nordseehafen.", "Wann eröffnete die Stadt den Nordseehafen?", "1904"),
        ("Seit 1998 leitet Karl Voss die Werft in Emden.", "Seit wann leitet Karl Voss die Werft in Emden?", "1998"),
        ("Die Brücke in Lund wurde von Karl Voss entworfen.", "Von wem wurde die Brücke in Lund entworfen?",
         "Karl Voss"),
        ("Karl Voss baute die Hängebrücke und wiegt 80 kg.", "Wer baute die Hängebrücke?", "Karl Voss"),
        ("Das Rathaus Lunds befindet sich in der Bergstraße.", "Wo befindet sich das Rathaus Lunds?",
         "in der Bergstraße"),
        ("Über 60 % der Fischer Emdens starben 1904.", "Wie viel Prozent der Fischer Emdens starben 1904?", "Über 60"),
        ("Karl Voss starb um 1904 in Ulm.", "Wann starb Karl Voss in Ulm?", "um 1904"),
        ("Ada Berg verließ 1754 Fort Duval.", "Wann verließ Ada Berg Fort Duval?", "1754"),
        ("Die Galerie für Uhren schloss am 25. Februar 2010.", "Welche Galerie schloss am 25. Februar 2010?",
         "Die Galerie für Uhren"),
        ("Lundia ist der größte Hafen an der Küste.", "Was ist Lundia?", "der größte Hafen an der Küste"),
    ],
)  # fmt: skip
def test_the_verb_of_a_german_statement_follows_the_word_that_asks(sentence: str, question: str, answer: str) -> None:
    assert (question, answer) in [(cloze.question, cloze.answer) for cloze in asked_of_german(sentence)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Er wurde 1904 in Ulm geboren.",  # who?
        "Außerdem besuchte sie 1904 den Nordseehafen.",
        "Danach wurde diese Brücke 1904 in Ulm gebaut.",
        "Die Versammlung beschloss 1904, dass der Nordseehafen in Emden erweitert wird.",  # what it decided is cut off
        "Die Brücke wurde zwischen 1904 und 1906 sowie 1911 erneuert.",  # two times
        "Die beiden Häfen bestehen seit den letzten fünf Jahren.",
        "Wurde der Nordseehafen 1904 eröffnet?",
        "Die Brücke von Lund wurde nicht 1904 gebaut.",  # when, then?
        "Die Brücke von Lund hat zwischen 10 und 12 Bögen.",
        "Der Hafen wurde vom 3. bis 5. Mai 1904 gesperrt.",
    ],
)
def test_german_sentences_that_point_to_others_or_are_half_are_not_asked(sentence: str) -> None:
    assert asked_of_german(sentence) == []


def test_the_part_that_answers_is_taken_out_where_it_stands_and_not_where_a_longer_word_begins_so() -> None:
    questions = [cloze.question for cloze in asked_of_german("Ada Berg reiste mit Karl in Ulmenau nach Rast in Ulm.")]
    assert "Wo reiste Ada Berg mit Karl in Ulmenau nach Rast?" in questions


def test_a_place_that_follows_another_one_is_not_asked_for_alone() -> None:
    clozes = asked_of_german("Karl Voss lebte in Ulmenau und in Ulm.")
    assert [cloze.answer for cloze in clozes if cloze.word == "where"] == ["in Ulmenau und in Ulm"]


def test_an_answer_that_points_to_another_sentence_is_none() -> None:
    assert asked_of_german("Die Werft Emdens verwendet diesen Krantyp.") == []


def test_a_french_question_has_no_comma_at_its_end_and_no_capital_within() -> None:
    questions = [cloze.question for cloze in asked_of_french("Deux ponts relient Lund, en Scanie, en 1904.")]
    assert "Quand est-ce que deux ponts relient Lund, en Scanie ?" in questions


def test_several_french_things_are_not_asked_for_as_one() -> None:
    questions = [cloze.question for cloze in asked_of_french("Les deux ponts de Lund ont été construits en 1904.")]
    assert questions == ["Quand est-ce que les deux ponts de Lund ont été construits ?"]


def test_a_chinese_quotation_that_a_comma_cuts_in_two_is_not_asked() -> None:
    whole = "亨利三世于1047年正式册封欧特维尔领袖卓戈为“意大利公爵和主人”。"
    cut = "国王亨利三世于1047年正式册封欧特维尔领袖卓戈为“意大利公爵和主人，以及所有诺曼人的伯爵”，并将其封地归还。"
    assert (len(asked_in_chinese([whole])), asked_in_chinese([cut])) == (1, [])


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("Depuis 1996, le pont de Brandvik est inscrit au patrimoine.",
         "Depuis quand est-ce que le pont de Brandvik est inscrit au patrimoine ?", "1996"),
        ("Louise Michel a dirigé l'école de Brandvik.", "Qui a dirigé l'école de Brandvik ?", "Louise Michel"),
        ("Le gouvernement de Versailles a écrasé la révolte de Brandvik.",
         "Quel gouvernement a écrasé la révolte de Brandvik ?", "Le gouvernement de Versailles"),
        ("Adèle Berg est née à Varsovie en 1867.", "Où est-ce qu'Adèle Berg est née en 1867 ?", "Varsovie"),
        ("Le phare de Cordouan compte 311 marches.",
         "Combien de marches est-ce que le phare de Cordouan compte ?", "311"),
        ("Le mascaret est une vague qui remonte la Dordogne.", "Qu'est-ce que le mascaret ?",
         "une vague qui remonte la Dordogne"),
    ],
)  # fmt: skip
def test_the_order_of_a_french_statement_stays(sentence: str, question: str, answer: str) -> None:
    assert (question, answer) in [(cloze.question, cloze.answer) for cloze in asked_of_french(sentence)]


def test_a_french_pronoun_is_what_the_title_names() -> None:
    sentence = "Elle est née à Varsovie en 1867."
    assert asked_of_french(sentence) == []
    questions = [cloze.question for cloze in asked_of_french(sentence, "Marie Curie")]
    assert "Quand est-ce que Marie Curie est née à Varsovie ?" in questions


@pytest.mark.parametrize(
    ("sentences", "question", "answer"),
    [
        (
            ["赵鹏（），中国足球运动员，司职后卫。", "赵鹏于1997年便加入河南建业青年队。"],
            "赵鹏于哪一年便加入河南建业青年队？",
            "1997年",
        ),
        (["岑朗天（），香港作家。", "1995年加入香港电影评论学会。"], "岑朗天哪一年加入香港电影评论学会？", "1995年"),
        (["岑朗天（），香港作家。", "岑朗天曾入选香港作家协会。"], "谁曾入选香港作家协会？", "岑朗天"),
        (["固始站是宁西铁路上的一座车站。"], "固始站是什么？", "宁西铁路上的一座车站"),
        (["大沙地站目前设有两个出入口。"], "大沙地站目前设有几个出入口？", "两个"),
    ],
)
def test_in_chinese_the_word_that_asks_stands_where_the_answer_stood(
    sentences: list[str], question: str, answer: str
) -> None:
    assert (question, answer) in [(cloze.question, cloze.answer) for cloze in asked_in_chinese(sentences)]


@pytest.mark.parametrize(
    "sentence",
    [
        "他于1997年加入河南建业队。",
        "同年加入河南建业队。",
        "当河南建业队于1997年成立的时候。",
        "根据《1978年苏格兰法令》的规定。",
    ],
)
def test_chinese_clauses_that_point_to_others_are_not_asked(sentence: str) -> None:
    assert asked_in_chinese([sentence]) == []


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        (
            "永禄8年（1565年）、信長は犬山城の織田信清を下した。",
            "信長はいつ犬山城の織田信清を下したか？",
            "永禄8年（1565年）",
        ),
        (
            "また、信孝は高野山に攻撃を加えて131名の高僧を殺害した。",
            "信孝は高野山に攻撃を加えて何名の高僧を殺害したか？",
            "131名",
        ),
        ("アルマード港はベルグ商会の最大の港である。", "アルマード港とは何か？", "ベルグ商会の最大の港"),
    ],
)
def test_a_japanese_question_ends_in_the_particle_that_asks(sentence: str, question: str, answer: str) -> None:
    assert (question, answer) in [(cloze.question, cloze.answer) for cloze in asked_in_japanese([sentence])]


def test_a_japanese_sentence_that_points_to_others_is_not_asked() -> None:
    assert asked_in_japanese(["彼は1565年に犬山城の織田信清を下した。"]) == []


def test_a_passage_is_asked_in_its_own_language_and_english_by_the_parser_alone() -> None:
    german = "Werft\nDer Nordseehafen wurde 1904 von der Stadt gebaut. Die Kräne stehen heute im Museum der Stadt."
    assert [cloze.question for cloze in clozes_in(german)] == [
        "Wann wurde der Nordseehafen von der Stadt gebaut?",
        "Von wem wurde der Nordseehafen 1904 gebaut?",
    ]
    assert clozes_in("Werft\nThe north harbor was built by the town in 1904. Its cranes are in the museum.") == []
