"""Takes the last step of a program that reads passages: the answer alone, or with an explanation of it."""

from typing import Any

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion

EXPLAIN = "Also say what in the passages supports the answer."


def make_reader(explain: bool) -> FittingPredict:
    """What is asked with `question` and `passages`; where they are too long, it shortens the passages."""
    return FittingPredict(AnswerAndExplain if explain else AnswerQuestion, shorten="passages")


def read_reply(reply: Any) -> dict[str, str]:
    """`answer`, and `explanation` where one was asked for: what a program's prediction takes over."""
    return {name: reply[name] for name in ("answer", "explanation") if name in reply}
