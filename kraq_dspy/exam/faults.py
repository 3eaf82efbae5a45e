"""Tells by words alone why a question or its answers are of no use for a test set."""

from collections.abc import Sequence

from kraq_dspy.exam.gold_finder import says_answer
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.programs.kraq.question_text import MARKS

LONGEST_ANSWER = 25
"""Words of an answer, which is copied; nuggets are statements and may be longer."""
CLOSED = frozenset(("yes", "no"))
ARTICLES = frozenset(("the", "a", "an"))


def fault_in_question(
    question: str, answers: Sequence[str], hidden: Sequence[str] = (), *, fewest_answers: int = 1
) -> str:
    """Tell whether nothing was asked or answered, or a name was given away; "" where nothing is wrong.

    >>> fault_in_question("Where did Ada live?", [])
    'nothing was answered'
    """
    if not question.endswith(MARKS):
        return "nothing was asked"
    if len(answers) < fewest_answers:
        return "nothing was answered"
    if any(plain_words(name) in plain_words(question) for name in hidden):
        return "names what links the passages"
    return ""


def fault_in_answers(question: str, answers: Sequence[str], texts: Sequence[str], *, may_be_named: bool = False) -> str:
    """Tell what is wrong with answers that are to be copied from `texts`; "" for nothing.

    A question of which the answers `may_be_named` names them itself, as a comparison does.

    >>> fault_in_answers("Who was Ada?", ["a poet"], ["Ada was a mathematician."])
    'the answer is not in the passages'
    """
    text = "\n".join(texts)
    for answer in answers:
        words = answer.split()
        if len(words) > LONGEST_ANSWER:
            return "the answer is long"
        if ARTICLES.intersection(words[-1:]):  # something stood behind it
            return "the answer is cut off"
    for answer in answers:
        if not says_answer(answer, text) and answer.lower() not in CLOSED:
            return "the answer is not in the passages"
    if not may_be_named and any(says_answer(answer, question) for answer in answers):
        return "gives its answer away"
    return ""
