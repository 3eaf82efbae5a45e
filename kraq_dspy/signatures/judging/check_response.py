"""Checks whether a response is right for its question and context (QA-RAG, listing 9: Type2)."""

from typing import Literal

import dspy


class CheckResponse(dspy.Signature):
    """Decide whether the response is the correct one to the question, given nothing but the context.

    Say no when the context does not support what the response states, or when it does not respond to the question.
    """

    question: str = dspy.InputField()
    context: list[str] = dspy.InputField()
    response: str = dspy.InputField()
    valid: Literal["yes", "no"] = dspy.OutputField()
