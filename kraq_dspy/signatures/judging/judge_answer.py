"""Judges whether an answer is right: the papers' binary judge (KRAQ paper, appendix E.6; thesis, 7.7)."""

import dspy


class JudgeAnswer(dspy.Signature):
    """Decide whether the answer responds to the question correctly, taking the reference answers as the truth.

    Any one reference is enough. An answer that means the same in other words, or is more specific but the same at its
    core, is correct. One that contradicts the reference, hedges between several, or does not commit itself is not.
    """

    question: str = dspy.InputField()
    reference_answers: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    correct: bool = dspy.OutputField()
