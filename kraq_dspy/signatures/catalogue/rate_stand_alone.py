"""Rates whether a question is clear without its passage: the third critic of pairs (QA search paper, appendix)."""

from typing import Literal

import dspy


class RateStandAlone(dspy.Signature):
    """Rate how well the question can be understood by somebody who sees nothing else.

    1: it points to something unseen: "the document", "he", "this model", a case only the passage knows. 5: it makes
    sense by itself. Technical words and abbreviations are no fault when one can look them up.
    """

    question: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    stand_alone: Literal[1, 2, 3, 4, 5] = dspy.OutputField()
