"""Asks whether two similar names mean one thing (KRAQ, stage 2)."""

import dspy


class ConfirmSameEntity(dspy.Signature):
    """Decide whether two names, each with its description, refer to one and the same thing.

    Abbreviations, translations and spellings of a name are the same; relatives, namesakes, editions and parts are not.
    """

    first: str = dspy.InputField()
    second: str = dspy.InputField()
    same: bool = dspy.OutputField()
