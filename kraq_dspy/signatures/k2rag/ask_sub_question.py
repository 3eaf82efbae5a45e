"""Asks what a part of the graph's account makes one want to look up (K2RAG, step C)."""

import dspy


class AskSubQuestion(dspy.Signature):
    """Ask one small question about what the information tells, naming the people, places or things it is about."""

    information: str = dspy.InputField()
    sub_question: str = dspy.OutputField()
