"""Asks which prepared question means the same (QA search paper, Algorithm 1 and figure 7)."""

import dspy


class FindSameQuestion(dspy.Signature):
    """Find the catalogue's question that asks exactly what the user asks, so that its answer answers the user.

    Other words, another language, a shorter or a longer form do not matter. Another name, number, date or place does,
    and so does asking for the opposite, or for another thing about the same topic: those are no match.
    """

    question: str = dspy.InputField(desc="the user's")
    catalogue: list[str] = dspy.InputField(desc="number: question")
    number: int = dspy.OutputField(desc="the number of that question; -1 if no question means the same")
