"""Writes a question that a passage answers, and its answer, for the catalogue (QA search paper, figure 8)."""

import dspy


class WriteFactoidPair(dspy.Signature):
    """Write one question that the passage answers with a short fact, as somebody would type it into a search box, and
    that answer.

    The question says all that is needed to understand it, and speaks neither of a passage nor of a text.
    """

    passage: str = dspy.InputField()
    question: str = dspy.OutputField()
    answer: str = dspy.OutputField(desc="short, from the passage alone")
