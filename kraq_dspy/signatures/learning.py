"""Holds the steps that make rows to learn from."""

import dspy


# Summarises a question's evidence as a community's summary would, for pairs (KRAQ paper, appendix A).
class SummarizeEvidence(dspy.Signature):
    """Summarise the passages as one group of related entities: at most five sentences, from the passages alone.

    Begin with what the group centres on, then the key members and how they are related. The topic is such that someone
    who read the summary could come to ask the question; but neither say, paraphrase nor hint at the question, and do
    not mention that there is one.
    """

    passages: list[str] = dspy.InputField()
    question: str = dspy.InputField(desc="never to be revealed")
    title: str = dspy.OutputField(desc="what the group is, in a few words")
    summary: str = dspy.OutputField()
