import numpy as np

from kraq_dspy.programs.kraq.duplicate_questions import mark_duplicates
from kraq_dspy.records import Question


def ask(text: str) -> Question:
    return Question(text, text, "kraq", None, 0, (), ())


def unit(*angles_in_degrees: float) -> np.ndarray:
    radians = np.radians(angles_in_degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_a_question_near_to_an_earlier_one_is_marked_as_its_duplicate() -> None:
    marked = mark_duplicates([ask("a"), ask("b"), ask("c")], unit(0, 10, 90), similarity=0.95)
    assert [question.duplicate_of for question in marked] == [None, "a", None]


def test_a_duplicate_does_not_make_others_its_duplicates() -> None:
    # 0 and 15 are near, 15 and 30 are near, 0 and 30 are not: only the middle one goes.
    marked = mark_duplicates([ask("a"), ask("b"), ask("c")], unit(0, 15, 30), similarity=0.95)
    assert [question.duplicate_of for question in marked] == [None, "a", None]


def test_equal_text_is_a_duplicate_whatever_the_vectors_say() -> None:
    marked = mark_duplicates([ask("Who is Ada?"), ask("who  is ada?")], unit(0, 90), similarity=0.95)
    assert marked[1].duplicate_of == "Who is Ada?"


def test_blocks_do_not_change_the_outcome() -> None:
    angles = np.linspace(0, 3600, 2600)
    questions = [ask(str(number)) for number in range(len(angles))]
    marked = mark_duplicates(questions, unit(*angles), similarity=0.95)
    kept = [index for index, question in enumerate(marked) if question.duplicate_of is None]
    cosines = unit(*angles[kept]) @ unit(*angles[kept]).T - np.eye(len(kept))
    assert cosines.max() < 0.95
    assert all(
        unit(angles[index], float(angles[int(question.duplicate_of)])).prod(axis=0).sum() >= 0.95 - 1e-5
        for index, question in enumerate(marked)
        if question.duplicate_of is not None
    )
