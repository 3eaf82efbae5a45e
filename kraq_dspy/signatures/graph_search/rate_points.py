"""Finds what some reports contribute to an answer, and how much it matters: GraphRAG's global search, map."""

import dspy

from kraq_dspy.records import RatedPoint


class RatePoints(dspy.Signature):
    """List what the reports say that helps to answer the question, each point with its importance for the answer.

    A point is a full statement with its names and numbers. Importance runs from 0 (of no use) to 100 (the answer
    itself). Make nothing up; no points is right where the reports do not help.
    """

    reports: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    points: list[RatedPoint] = dspy.OutputField()
