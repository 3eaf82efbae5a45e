"""Rates whether the passage answers the question: the first critic of synthetic pairs (QA search paper, figure 9)."""

from typing import Literal

import dspy


class RateGroundedness(dspy.Signature):
    """Rate how well the passage alone answers the question, and whether the answer given is the one it has.

    1: the passage does not answer it, or says otherwise. 5: it answers it clearly, in one way only, as given.
    """

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    passage: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    groundedness: Literal[1, 2, 3, 4, 5] = dspy.OutputField()
