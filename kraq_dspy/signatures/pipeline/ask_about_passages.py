"""Asks about passages drawn at random: the baseline Random (KRAQ paper, section 2; thesis, chapter 3)."""

import dspy


class AskAboutPassages(dspy.Signature):
    """Ask one short question about a theme that the passages share."""

    passages: list[str] = dspy.InputField()
    question: str = dspy.OutputField()
