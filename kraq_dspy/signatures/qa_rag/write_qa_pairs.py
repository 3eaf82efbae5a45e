"""Writes a passage as questions and answers: the context plug-in (QA-RAG, listing 7)."""

import dspy

from kraq_dspy.records import QAPair


class WriteQAPairs(dspy.Signature):
    """Put everything that the passage says into question-answer pairs, from the passage alone.

    A question can be understood without the passage: it names what it asks about and uses no pronoun for it. An answer
    keeps names, numbers and dates as the passage gives them.
    """

    passage: str = dspy.InputField()
    pairs: list[QAPair] = dspy.OutputField(desc="in reading order; nothing twice")
