"""Makes one answer of the points of all reports: GraphRAG's global search, reduce."""

import dspy


class AnswerFromPoints(dspy.Signature):
    """Answer the question from the points, which come most important first, each after its importance (0 to 100).

    Bring together what belongs together, drop what does not matter, add nothing. If the points do not hold the answer,
    say "I do not know".
    """

    points: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
