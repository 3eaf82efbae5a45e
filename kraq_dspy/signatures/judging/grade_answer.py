"""Grades an answer from 1 to 5 by a rubric (QA search paper, appendix: 4 and 5 count as right)."""

from typing import Literal

import dspy


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
