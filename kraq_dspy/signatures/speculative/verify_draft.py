"""Asks whether a draft's rationale supports its response (KRAQ thesis, appendix 7.6)."""

from typing import Literal

import dspy


class VerifyDraft(dspy.Signature):
    """Judge whether the rationale is good enough to support the response as an answer to the question."""

    question: str = dspy.InputField()
    response: str = dspy.InputField()
    rationale: str = dspy.InputField()
    verdict: Literal["Yes", "No"] = dspy.OutputField()
