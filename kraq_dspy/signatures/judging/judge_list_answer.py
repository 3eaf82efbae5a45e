"""Judges whether an answer that is a list is right (KRAQ thesis, 4.2.3: BioASQ)."""

import dspy


class JudgeListAnswer(dspy.Signature):
    """Decide whether the answer covers most of the reference items, which together are the true answer.

    An item is given with its synonyms; any of them, or other words for the same thing, covers it. Further items do not
    matter unless they contradict the reference.
    """

    question: str = dspy.InputField()
    reference_items: list[list[str]] = dspy.InputField()
    answer: str = dspy.InputField()
    correct: bool = dspy.OutputField()
