"""Holds the step of a conversation: a question made complete from what was said before it."""

import dspy


class CompleteQuestion(dspy.Signature):
    """Rewrite the last question so that it can be understood without the conversation.

    Replace pronouns and words such as "there" or "that company" with the names that they stand for, and add what was
    left out, both from the conversation alone. Keep everything else as it is asked, in its language. A question that is
    complete stays word for word. Do not answer it.
    """

    conversation: list[str] = dspy.InputField(desc="questions and answers so far, the oldest first")
    last_question: str = dspy.InputField()
    complete_question: str = dspy.OutputField(desc="one question")
