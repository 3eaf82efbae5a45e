"""Rewrites a question as keywords (DMQR-RAG: Li et al., 2024)."""

import dspy


class ListKeywords(dspy.Signature):
    """List the keywords of the question, as one would type them into a search box: names in full, then the things,
    relations and times that it asks about. No question words, nothing that it does not say.
    """

    question: str = dspy.InputField()
    keywords: list[str] = dspy.OutputField()
