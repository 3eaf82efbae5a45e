"""Puts the earlier question before one that points to it, so that "And the Lind mill?" is searched with both.

No pronoun is resolved: the words of both questions find the passages of both. A model that completes questions
(`CompleteQuestion`) says what is meant.
"""

import re
from collections.abc import Sequence

from kraq_dspy.language.social_turns import social_kind
from kraq_dspy.language.text import content_words

QUESTION_MARK, ANSWER_MARK = "Question: ", "\nAnswer: "
TELLS_ALONE = 2  # words of a question that say what it is about

_OPENING = re.compile(r"(?:(?:and|but|or|so|no|sorry|then)\b|(?:what|how) about\b)", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:he|she|him|his|hers?)\b", re.IGNORECASE)
_POINTER = re.compile(
    r"\b(?:it|its|they|them|theirs?|this|that|these|those|he|she|him|his|hers?)\b|\bthere\b(?= ?[?.!]|$)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=\w )[A-Z]|\d")


def complete_question(question: str, conversation: Sequence[str]) -> str:
    """`question` behind the last one of the conversation, if it points to that one; otherwise as it is.

    `conversation` holds turns as `programs.conversation` writes them: "Question: ...\\nAnswer: ...", the oldest first.
    Thanks between two questions are passed over.

    >>> said = ["Question: Who built the Tarn mill?\\nAnswer: Ida Berg."]
    >>> complete_question("And the Lind mill?", said)
    'Who built the Tarn mill? And the Lind mill?'
    >>> complete_question("Who wrote Don Juan?", said)
    'Who wrote Don Juan?'
    """
    question = question.strip()
    earlier = [turn.removeprefix(QUESTION_MARK).partition(ANSWER_MARK)[0].strip() for turn in conversation]
    asked = [each for each in earlier if each and not social_kind(each)]
    if not asked or not question or not _points_back(question):
        return question
    return f"{asked[-1]} {question}"


def pronoun_for_nobody(question: str) -> str:
    """The pronoun for a person with nothing before it in the question that it could stand for; "" if there is none.

    >>> pronoun_for_nobody("Where was he born?"), pronoun_for_nobody("Which painter cut off his ear?")
    ('he', '')
    """
    pronoun = _PERSON.search(question)
    if pronoun is None or _NAME.search(question) or content_words(question[: pronoun.start()]):
        return ""
    return pronoun[0]


def _points_back(question: str) -> bool:
    """Whether the question begins as a follow-up, has too few words of its own, or a pronoun with nothing before it."""
    if _OPENING.match(question):
        return True
    if len(content_words(question)) < TELLS_ALONE and not _NAME.search(question):
        return True
    pointer = _POINTER.search(question)
    return pointer is not None and not content_words(question[: pointer.start()])
