"""A reply that says that it does not know is told from one that answers."""

import pytest

from kraq_dspy.language.declining import declines


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I do not know",
        "I don’t know.",
        "Unknown",
        "The passages do not say when she was born.",
        "The provided context does not contain any information about the mill.",
        "Based on the given documents, the passages do not mention the year.",
        "Sorry, I cannot answer that from the passages.",
        "There is not enough information to answer.",
        "Not enough information.",
        "Not mentioned.",
        "This question cannot be answered from the text.",
        "It cannot be determined from the passages.",
        "Ich weiß es nicht.",
    ],
)
def test_a_reply_without_an_answer_declines(reply: str) -> None:
    assert declines(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Oslo",
        "The unknown soldier",
        "The passages do not mention the year, but he was born in Oslo.",
        "There is no evidence that it helps.",
        "The context of the treaty was the war.",
        "It is not possible to smoke on board.",
        "The documents do not burn.",
    ],
)
def test_a_reply_with_an_answer_does_not(reply: str) -> None:
    assert not declines(reply)
