"""Makes several searches of one question (RAG-Fusion: Rackauckas, 2024)."""

import dspy


class VaryQuestion(dspy.Signature):
    """Write searches that together find what the question needs: other words for it, its parts, what it presupposes.

    Each search stands alone, names what it is about, and differs from the question and from the others.
    """

    question: str = dspy.InputField()
    count: int = dspy.InputField()
    searches: list[str] = dspy.OutputField(desc="as many as `count`")
