"""Asks a question in other ways: how QA search is tried (QA search paper, section 4)."""

import dspy


class RephraseQuestion(dspy.Signature):
    """Ask the question in other words, in its own language, so that it means the same and has the same answer.

    Do not answer it. Each rephrasing is one that somebody might type, and differs from the question and from the
    others. With `most_characters` above 0, none is longer than that: keep the words that tell what is asked, leave out
    the rest.
    """

    question: str = dspy.InputField()
    count: int = dspy.InputField()
    most_characters: int = dspy.InputField(desc="0: any length")
    rephrasings: list[str] = dspy.OutputField(desc="as many as `count`")
