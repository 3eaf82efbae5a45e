"""Holds the steps that judge answers."""

from dataclasses import dataclass
from typing import Literal

import dspy


@dataclass(frozen=True)
class JudgedStatement:
    """One thing that an answer says, and whether the passages say so too."""

    statement: str
    supported: bool


@dataclass(frozen=True)
class AttributedStatement:
    """One thing that the reference answer says, and whether the passages say it too."""

    statement: str
    attributed: bool


# Checks whether a response is right for its question and context (QA-RAG, listing 9: Type2).
class CheckResponse(dspy.Signature):
    """Decide whether the response is the correct one to the question, given nothing but the context.

    Say no when the context does not support what the response states, or when it does not respond to the question.
    """

    question: str = dspy.InputField()
    context: list[str] = dspy.InputField()
    response: str = dspy.InputField()
    valid: Literal["yes", "no"] = dspy.OutputField()


# Judges whether an answer is right: the papers' binary judge (KRAQ paper, appendix E.6; thesis, 7.7).
class JudgeAnswer(dspy.Signature):
    """Decide whether the answer responds to the question correctly, taking the reference answers as the truth.

    Any one reference is enough. An answer that means the same in other words, or is more specific but the same at its
    core, is correct. One that contradicts the reference, hedges between several, or does not commit itself is not.
    """

    question: str = dspy.InputField()
    reference_answers: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    correct: bool = dspy.OutputField()


# Judges whether an answer that is a list is right (KRAQ thesis, 4.2.3: BioASQ).
class JudgeListAnswer(dspy.Signature):
    """Decide whether the answer covers most of the reference items, which together are the true answer.

    An item is given with its synonyms; any of them, or other words for the same thing, covers it. Further items do not
    matter unless they contradict the reference.
    """

    question: str = dspy.InputField()
    reference_items: list[list[str]] = dspy.InputField()
    answer: str = dspy.InputField()
    correct: bool = dspy.OutputField()


# Grades an answer from 1 to 5 by a rubric (QA search paper, appendix: 4 and 5 count as right).
class GradeAnswer(dspy.Signature):
    """Grade how correct, accurate and factual the answer is, taking the reference answers as a perfect one (5).

    1: completely wrong. 2: mostly wrong. 3: partly right. 4: mostly right. 5: completely right. Judge the content, not
    the length or the style; first say what is right and what is wrong.
    """

    question: str = dspy.InputField()
    reference_answers: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    feedback: str = dspy.OutputField(desc="what is right and what is wrong, in one or two sentences")
    grade: Literal[1, 2, 3, 4, 5] = dspy.OutputField()


# Asks what of an answer the passages support: groundedness (RAGAS's faithfulness: Es et al., 2024).
class JudgeSupport(dspy.Signature):
    """Split the answer into the statements it makes, and decide of each whether the passages support it.

    A statement is supported if a reader of the passages alone would agree to it. What is true but not in the passages
    is not supported. Resolve pronouns, so that each statement stands for itself.
    """

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    statements: list[JudgedStatement] = dspy.OutputField(desc="at least one, unless the answer says nothing")


# Asks what of the right answer the passages hold: context recall (RAGAS's, of a reference answer: Es et al., 2024).
class AttributeReference(dspy.Signature):
    """Split the reference answer into the statements it makes, and decide of each whether it can be attributed to the
    passages.

    A statement is attributed if the passages say it, in whatever words. What is true but not in the passages is not.
    Say each statement in full, with what the question asks: an answer of a few words is one statement.
    """

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    reference_answer: str = dspy.InputField()
    statements: list[AttributedStatement] = dspy.OutputField(desc="at least one")
