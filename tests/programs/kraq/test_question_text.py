"""A question is plain that one sentence tells; some of these are SmolLM2's with its adapter, about the demo."""

import pytest

from kraq_dspy.programs.kraq.question_text import PLAIN, plainness

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
