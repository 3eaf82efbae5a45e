"""KRAQ stage 5: the question that stands for a community. The fine-tuned generator answers this signature."""

import dspy


class GenerateQuestion(dspy.Signature):
    """Ask the one question about the summary's main topic that a curious person would ask in conversation.

    Keep it short and simple, name what it is about, and ask for one thing that the summary can answer.
    """

    summary: str = dspy.InputField()
    question: str = dspy.OutputField()
