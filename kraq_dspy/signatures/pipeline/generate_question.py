"""Asks the question that stands for a community: what the fine-tuned generator answers (KRAQ, stage 5)."""

import dspy


class GenerateQuestion(dspy.Signature):
    """Write a short quiz question whose answer is in the summary. Name the person, place or thing it is about."""

    # "Ask what a curious person would ask about the summary's main topic" made small models ask of "the main topic".
    # What is said at more length than this, a model of half a billion parameters repeats
    # (docs/results/questions.md).

    summary: str = dspy.InputField()
    question: str = dspy.OutputField()
