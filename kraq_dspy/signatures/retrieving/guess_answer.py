"""Rewrites a question as a guessed answer, near to the passage with the real one (DMQR-RAG: Li et al., 2024)."""

import dspy


class GuessAnswer(dspy.Signature):
    """Write two or three sentences of the kind that an encyclopedia would answer the question with.

    They need not be true, only worded like the passage that holds the answer; they are searched with, never shown.
    """

    question: str = dspy.InputField()
    guess: str = dspy.OutputField()
