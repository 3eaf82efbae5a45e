"""Communities of passages in other languages than English are asked what their statements answer."""

import pytest

from kraq_dspy.embedded.asking.clozes.asking import clozes_in
from kraq_dspy.programs.kraq.asked_by import AskedBy, ListedPassages
from kraq_dspy.programs.kraq.other_statements import asked_otherwise
from kraq_dspy.records import PARSE, TOPIC, Chunk, Community, Entity
from kraq_dspy.settings import EMBEDDED, QuestionSettings


def asked_of(text: str, name: str) -> tuple[str, str]:
    """Who words the question of a community of one passage and one name, and the question."""
    passages = ListedPassages([Chunk("c", "d", 0, 0, len(text), text, 20)])
    community = Community("m", 0, None, (), ("e",), (), ("c",))
    entity = Entity("e", name, "phrase", "", (name,), ("c",))
    asking = AskedBy([community], passages, QuestionSettings(), generator=EMBEDDED, entities=[entity])
    wording = asking.template(community, f"{name}\n{text}")
    assert wording is not None
    return wording.model, wording.text


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("Im Jahr 1904 eröffnete die Stadt den Nordseehafen. Es regnete an diesem Tag, und niemand war da.",
         "Nordseehafen", "Wann eröffnete die Stadt den Nordseehafen?"),
        ("Louise Michel a dirigé l'école de Brandvik. Il pleuvait ce jour-là et tout le monde était dans la ville.",
         "Brandvik", "Qui a dirigé l'école de Brandvik ?"),
        ("阿尔马港于1904年由贝尔格公司建成。", "阿尔马港", "阿尔马港于哪一年由贝尔格公司建成？"),
        ("信孝は高野山に攻撃を加えて131名の高僧を殺害した。", "高野山",
         "信孝は高野山に攻撃を加えて何名の高僧を殺害したか？"),
    ],
)  # fmt: skip
def test_a_community_is_asked_in_the_language_of_its_passages(text: str, name: str, question: str) -> None:
    assert asked_of(text, name) == (PARSE, question)


def test_what_is_said_of_a_name_is_no_question_in_any_language() -> None:
    assert asked_of("李自成和崇祯帝都在北京。", "李自成")[0] == TOPIC


@pytest.mark.parametrize(
    "passage",
    [
        "Karl Voss baute 1931 noch weitere Brücken in Brandvik.",
        "信長は京都を出て、義昭を奉じ、永禄11年に犬山城を下した。",
    ],
)
def test_a_statement_that_continues_another_or_has_many_clauses_does_not_stand_for_a_group(passage: str) -> None:
    assert clozes_in(passage)
    assert not asked_otherwise(passage)
