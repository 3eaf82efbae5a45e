"""A question is plain that one sentence tells; some of these are SmolLM2's with its adapter, about the demo."""

import numpy as np
import pytest

from kraq_dspy.programs.kraq.element_list import bare_name
from kraq_dspy.programs.kraq.question_text import (
    PLAIN,
    mark_duplicates,
    plainness,
    question_in,
    stands_alone,
    with_mark,
)
from kraq_dspy.records import Question

HAYDEN = (
    "Mild and Hazy, Skyscraper National Park and Hardwood Records\n"
    "Mild and Hazy is a vinyl single by Canadian singer-songwriter Hayden. Skyscraper National Park is the third album "
    "by Canadian singer-songwriter Hayden. It was released in 1996 on Hayden's own label, Hardwood Records."
)
BOASTS = "Bernese Mountain Dog\nThe Bernese Mountain Dog is a large breed of dog. The mountain dog was kept on a farm."


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the third album by singer-songwriter Hayden?", HAYDEN),
        ("When was Mild and Hazy released on Hardwood Records?", HAYDEN),  # of the title: "it"
        ("Who is Robin John Bailie?", "Robin John Bailie is a solicitor."),
        ("Who met Ada?", "Ada met Charles."),
        ("誰發明了電話？", "Ada met Charles."),
        ("Who met Ada?", "艾達遇見查爾斯。"),
    ],
)
def test_what_one_sentence_tells_is_plain(question: str, text: str) -> None:
    assert plainness(question, text) >= PLAIN


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What album was the first single released by Hayden?", HAYDEN),  # of two sentences
        ("Which vinyl single was released in 2012?", HAYDEN),
        ("Which large breed of dog is a large breed of dog?", BOASTS),
        ("Which large breed of dog?", BOASTS),
        ("Which Bernese Mountain Dog was kept by?", BOASTS),
        ("Which breed is large?", BOASTS),  # names nothing
        ("Who is Ada?", "Ada met Charles."),  # too little to be about one thing
        ("Which " + "Bernese Mountain Dog and mountain dog " * 5 + "was kept on a farm?", BOASTS),
        ("What is what?", BOASTS),
    ],
)
def test_what_mixes_repeats_breaks_off_or_names_nothing_is_not(question: str, text: str) -> None:
    assert plainness(question, text) < PLAIN


def test_it_is_a_share_that_each_fault_halves() -> None:
    assert plainness("Where did Ada meet Charles?", "Ada met Charles.") == pytest.approx(2 / 3)
    assert plainness("Which Ada and Charles?", "Ada met Charles.") == pytest.approx(1 / 2)
    assert plainness("Who is the king?", "Ada met Charles.") == 0


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("1. Who founded it?", "Who founded it?"),
        ("1) **Who founded it?**\n2) When?", "Who founded it?"),
        ("Question 2: Who founded it?", "Who founded it?"),
        ("1. FC Nuremberg was founded when?", "1. FC Nuremberg was founded when?"),
        ("7 Up is made by whom?", "7 Up is made by whom?"),
    ],
)
def test_a_number_before_a_question_is_none_of_it(reply: str, question: str) -> None:
    assert question_in(reply) == question


def test_what_never_ends_is_no_question() -> None:
    assert stands_alone("Who founded it?", "")
    assert not stands_alone("Who founded it" + " and again" * 3600 + "?", "")


@pytest.mark.parametrize(
    ("name", "bare"),
    [('"Mira Tolan"', "Mira Tolan"), ("„Köln“ ", "Köln"), ('"A" and "B"', '"A" and "B"'), ("D'Arcy", "D'Arcy")],
)
def test_quotation_marks_around_a_name_are_none_of_it(name: str, bare: str) -> None:
    assert bare_name(name) == bare


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


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("What is the name of the beer brand?", False),
        ("What are the names of the demons?", False),
        ("What is the name of the beer brand of Kenya?", True),
        ("What is the name of the Tusker brand?", True),
        ("What is the name of the beer brand brewed in 1922?", True),
    ],
)
def test_the_name_of_one_thing_of_its_kind_is_asked_for_with_what_tells_which(question: str, does: bool) -> None:
    assert stands_alone(question, "") is does


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("How do cities keep drivers informed on the highways", "How do cities keep drivers informed on the highways?"),
        ("in which year was Ada born", "In which year was Ada born?"),
        ("Did Ada meet Charles", "Did Ada meet Charles?"),
        ("When Ada was born, she lived in London.", "When Ada was born, she lived in London."),
        ("Ada lived where Charles was", "Ada lived where Charles was"),
    ],
)
def test_a_question_without_a_mark_gets_one_and_a_statement_does_not(reply: str, question: str) -> None:
    assert with_mark(reply) == question


def test_a_question_in_words_that_its_text_does_not_have_stands_alone_and_one_that_points_back_does_not() -> None:
    assert stands_alone("How do cities keep drivers informed on the highways?", "")
    assert not stands_alone("What were their differences?", "")
    assert stands_alone("What were their differences with Ada?", "")


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        ("What do The cash flows comprise from borrowings?", False),
        ("Why did sales and Marketing Expenses Sales and marketing expenses increase?", False),
        ("What does the Company record?", False),
        ("Can you explain how it looks { how-it-looks }?", False),
        ("What did The Beatles record in 1966?", True),
        ("How do I read The New York Times?", True),
        ("What is vitamin A used for?", True),
        ("What had had an effect on the ship Alma?", True),
    ],
)
def test_a_question_that_is_pieced_together_is_not_whole(question: str, is_whole: bool) -> None:
    assert stands_alone(question, "") is is_whole
