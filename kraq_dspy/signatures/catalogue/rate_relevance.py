"""Rates whether anybody would ask this: the second critic of synthetic pairs (QA search paper, figure 10)."""

from typing import Literal

import dspy


class RateRelevance(dspy.Signature):
    """Rate how useful the answer to the question is to the audience.

    1: nobody among them would ask. 5: many of them need to know.
    """

    audience: str = dspy.InputField()
    question: str = dspy.InputField()
    evaluation: str = dspy.OutputField(desc="one or two sentences")
    relevance: Literal[1, 2, 3, 4, 5] = dspy.OutputField()
