"""Speculative RAG: does a draft's rationale support its response? (KRAQ thesis, appendix 7.6)"""

import dspy


class VerifyDraft(dspy.Signature):
    """Judge whether the rationale is good enough to support the response as an answer to the question.

    Answer with one word, Yes or No, and nothing else.
    """

    question: str = dspy.InputField()
    response: str = dspy.InputField()
    rationale: str = dspy.InputField()
    verdict: str = dspy.OutputField(desc="Yes or No")
