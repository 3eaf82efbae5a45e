"""Asks whether the prepared answer is right for the question: QA search's second look."""

import dspy


class ConfirmSameQuestion(dspy.Signature):
    """Decide whether the two questions ask for the same thing.

    They do not if they are about different people, things, places, times or numbers, or ask for different or opposite
    facts about the same one.
    """

    # With fields called "asked" and "stored", and asked whether one answer is right for both, a model of 1.5 billion
    # parameters said yes to nearly every pair (docs/results/qa-search.md).

    first_question: str = dspy.InputField()
    second_question: str = dspy.InputField()
    same: bool = dspy.OutputField()
