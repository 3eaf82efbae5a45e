"""Puts a document, or what was retrieved for a question, into fewer words (K2RAG)."""

import dspy


class ShortenText(dspy.Signature):
    """Tell what the text says in about so many words, from the text alone.

    Keep what questions are asked about: who did what, names, numbers, dates and places, as the text writes them. Leave
    out what is said twice, examples and ornament.
    """

    text: str = dspy.InputField()
    words: int = dspy.InputField()
    shortened: str = dspy.OutputField()
