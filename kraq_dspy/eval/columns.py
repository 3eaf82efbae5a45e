"""Names the columns of a file of questions."""

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Names of columns that kraq does not find by itself. `QUESTION`, `ANSWERS` and `DOCUMENTS` of
    `questions.py` list the names that kraq finds.

    Args:
        question: the column with the question.
        answers: the column with the right answers.
        documents: the column with the ids of the documents that hold the evidence.

    >>> from kraq_dspy.eval import read_questions
    >>> read_questions([{"ask": "Which city?", "right": "Oslo"}], QuestionColumns("ask", "right"))[0].answers
    ('Oslo',)
    """

    question: str = ""
    answers: str = ""
    documents: str = ""

    def options(self) -> list[str]:
        """The options that give a command these names; none for columns that are found.

        >>> QuestionColumns("ask").options()
        ['--question-column', 'ask']
        """
        named = zip(
            ("--question-column", "--answer-column", "--documents-column"), dataclasses.astuple(self), strict=True
        )
        return [word for option, name in named if name for word in (option, name)]


FOUND = QuestionColumns()
"""All columns are found by themselves."""
