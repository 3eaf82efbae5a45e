"""Instructions are asked about as their reader would: how something is done, and what to do in some case."""

import pytest

from kraq_dspy.embedded.reading.reader import reader


def asked(passage: str) -> dict[str, str]:
    analysis = reader().analysis(passage)
    assert analysis is not None
    return {asked.question: asked.answer for _, asked in analysis.asked()}


@pytest.mark.parametrize(
    ("passage", "question", "answer"),
    [
        (
            "To close an account at the club, write to the clerk of Harrow.",
            "How can I close an account at the club?",
            "write to the clerk of Harrow",
        ),
        (
            "If you have questions about the prices of the club, you can ask the clerk.",
            "What can I do if I have questions about the prices of the club?",
            "you can ask the clerk",
        ),
        (
            "club.org\nTo close your account, write to the clerk of Harrow.",
            "How can I close my account at club.org?",
            "write to the clerk of Harrow",
        ),
        (
            "club.org\nIf you have questions about our prices, ask the clerk of Harrow.",
            "What can I do if I have questions about club.org's prices?",
            "ask the clerk of Harrow",
        ),
        (
            "club.org\nIf you are a resident of Harrow, you may ask the clerk for a list.",
            "What can I do at club.org if I am a resident of Harrow?",
            "you may ask the clerk for a list",
        ),
    ],
)
def test_the_reader_asks_how_and_what_to_do(passage: str, question: str, answer: str) -> None:
    assert asked(passage)[question] == answer


@pytest.mark.parametrize(
    "case", ["If you have questions about the prices of the club", "When the club closes at night"]
)
def test_a_case_or_a_time_is_no_purpose(case: str) -> None:
    assert not [question for question in asked(f"{case}, write to the clerk of Harrow.") if "How can I" in question]


@pytest.mark.parametrize(
    "sentence",
    [
        "To close an account at the club, click here.",  # where?
        "If you have questions about our prices, ask the clerk.",  # whose?
        "To close this account at the club, write to the clerk of Harrow.",  # which?
        "To close an account at the club, the clerk writes to the bank.",  # no instruction
        "To get there, write to the clerk of Harrow.",
    ],
)
def test_what_only_another_sentence_tells_is_not_asked(sentence: str) -> None:
    assert not [question for question in asked(sentence) if question.startswith(("How can I", "What can I do"))]
