"""Puts a passage into questions and answers, and a question into parts: by its sentences and their names."""

import re

from kraq_dspy.models.lms.engines.embedded.ask import question_about
from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.text import distinct, parted, sentences

NOTHING_NAMED = "What is this about?"
CLAUSE = re.compile(
    r"(?:,? and|;|,)\s+(?=(?:who|what|which|when|where|why|how|in what|in which)\b)|(?<=\?)\s+", re.IGNORECASE
)
EITHER = re.compile(
    r"^(?P<lead>.*?\b(?:who|which|what|whose)\b[^,:]*?)[,:] (?P<a>[A-Z0-9\"“][^,?]*?),? or (?P<b>[^?]+)\?$",
    re.IGNORECASE,
)


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


def sub_questions(question: str) -> list[str]:
    """The clauses that each ask something by name, or a choice of two as a question about each; else the question."""
    either = EITHER.match(question.strip())
    if either:
        return [f"{either['lead']}: {either[side].strip(' “”' + chr(34))}?" for side in ("a", "b")]
    parts = [part.strip(" ,;") for part in CLAUSE.split(question)]
    if len(parts) < 2 or not all(names_in(part.partition(" ")[2]) for part in parts):
        return [question.strip()]
    return [f"{part[:1].upper()}{part[1:].rstrip('?')}?" for part in parts]
