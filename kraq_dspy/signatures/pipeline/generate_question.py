"""Asks the question that stands for a community: what the fine-tuned generator answers (KRAQ, stage 5)."""

import dspy


class GenerateQuestion(dspy.Signature):
    """Ask what a curious person would ask about the summary's main topic: short, conversational, one thing, by name."""

    summary: str = dspy.InputField()
    question: str = dspy.OutputField()
