"""Takes a question apart into what it asks, one thing at a time: the query plug-in (QA-RAG, listing 6)."""

import dspy


class DecomposeQuestion(dspy.Signature):
    """Split the question into the smaller questions that it is made of.

    Each of them can be understood alone, names the people, places or things it is about, and says nothing that the
    question does not say. A question that asks one thing stays as it is, the only entry.
    """

    question: str = dspy.InputField()
    sub_questions: list[str] = dspy.OutputField()
