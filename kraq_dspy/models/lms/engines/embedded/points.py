"""Takes from reports the sentences nearest to a question, rated by how near they are, and answers from such points."""

import re

from kraq_dspy.models.lms.engines.embedded.answer import Similar, answer, nearest

IMPORTANCE = re.compile(r"^\d+: ")


def rated_points(question: str, reports: list[str], similar: Similar) -> list[dict[str, object]]:
    """Up to five sentences of the reports; a sentence without a word of the question is none. Titles that only list
    names (our own) are left out."""
    evidence = nearest(question, reports, similar, count=5)
    return [
        {
            "point": part.text if not part.title or "; " in part.title else f"{part.title}: {part.text}",
            "importance": max(1, min(100, round(50 * part.score))),
        }
        for part in evidence
    ]


def answer_from_points(question: str, points: list[str], similar: Similar) -> str:
    return answer(question, [IMPORTANCE.sub("", point) for point in points], similar)
