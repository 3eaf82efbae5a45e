"""Rewrites a question as its core (DMQR-RAG: Li et al., 2024)."""

import dspy


class CondenseQuestion(dspy.Signature):
    """Say in a few words what the question needs to know; leave out side remarks, conditions and politeness."""

    question: str = dspy.InputField()
    core: str = dspy.OutputField()
