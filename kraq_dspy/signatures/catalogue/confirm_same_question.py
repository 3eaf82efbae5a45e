"""Asks whether the prepared answer is right for the question: QA search's second look."""

import dspy


class ConfirmSameQuestion(dspy.Signature):
    """Decide whether one answer is right for both questions, in all that they name and ask for.

    Say no when one of them negates what the other says, asks for the opposite, for another time, number, person, place
    or thing, or when one adds a condition that changes the answer. Other words for the same are yes.
    """

    asked: str = dspy.InputField()
    stored: str = dspy.InputField()
    same: bool = dspy.OutputField()
