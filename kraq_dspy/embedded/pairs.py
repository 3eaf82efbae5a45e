"""Writes question-answer pairs of a passage: a template asks, and words of the passage answer."""

from kraq_dspy.embedded.answer import Similar, short_answer
from kraq_dspy.embedded.asking.templates import question_about
from kraq_dspy.language.text import NOTHING_NAMED, clipped, distinct, parted, sentences


def factoid_pair(passage: str, similar: Similar) -> dict[str, str]:
    """Return what the passage is asked about, and the words in it that answer."""
    question = question_about(passage)
    response, _ = short_answer(question, [passage], similar)
    return {"question": question, "answer": response or clipped(passage, 30)}


def question_answer_pairs(passage: str) -> list[dict[str, str]]:
    """One pair for each sentence that names something; sentences that do not go on with the answer before them.

    An answer that does not have the title in it begins with the title, so that it stands alone.
    """
    title, body = parted(passage)
    pairs: list[dict[str, str]] = []
    for sentence in distinct(sentences(body)):
        question = question_about(sentence)
        if question == NOTHING_NAMED:
            if pairs:
                pairs[-1]["answer"] += f" {sentence}"
                continue
            question = f"What is told of {title}?" if title else question
        answer = f"{title}: {sentence}" if title and title not in sentence else sentence
        pairs.append({"question": question, "answer": answer})
    return pairs
