"""Asks the question that stands for a community: what the fine-tuned generator answers (KRAQ, stage 5)."""

import dspy


class GenerateQuestion(dspy.Signature):
    """Write one quiz question, of at most 15 words, whose answer stands in the summary.

    Name the subject; whoever reads the question sees nothing else.
    """

    # "Ask what a curious person would ask about the summary's main topic" made small models ask of "the main topic"
    # (docs/results/questions.md). Longer wordings of this are repeated by a model of half a billion parameters.

    summary: str = dspy.InputField()
    question: str = dspy.OutputField()
