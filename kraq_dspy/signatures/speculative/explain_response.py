"""Explains why known evidence supports a known answer: rows for fine-tuning the drafter (Wang et al., 2024)."""

import dspy


class ExplainResponse(dspy.Signature):
    """Say what in the passages makes the response right: one to three sentences, from the passages alone."""

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    response: str = dspy.InputField()
    rationale: str = dspy.OutputField()
