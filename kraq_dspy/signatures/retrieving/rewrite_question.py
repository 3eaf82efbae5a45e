"""Puts the same question so that a search understands it (QRFusion; DMQR's general rewriting)."""

import dspy


class RewriteQuestion(dspy.Signature):
    """Put the question more clearly for a search: one sentence that keeps all it asks and names, without filler.

    Resolve what is vague only where the question itself says how. A question that is clear already stays as it is.
    """

    question: str = dspy.InputField()
    rewritten: str = dspy.OutputField()
