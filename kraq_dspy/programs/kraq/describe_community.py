"""KRAQ stages 4 and 5 as programs: what a community is about, and the question that stands for it."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy.programs.both_ways import blocking, call
from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.programs.state import SavableModule
from kraq_dspy.records import Finding
from kraq_dspy.signatures import AskAboutPassages, GenerateQuestion, SummarizeCommunity

_UP_TO_MARK = re.compile(r".*[?？؟]")


def shown_summary(title: str, text: str) -> str:
    """A summary as the generator sees it, in training and when it is asked: its title, and the text below."""
    return f"{title}\n{text}" if title else text


class DescribeCommunity(SavableModule):
    """Title, summary and findings of a community whose elements come most important first."""

    outputs: ClassVar[dict[str, Any]] = {"title": str, "summary": str, "findings": tuple[Finding, ...]}

    def __init__(self) -> None:
        super().__init__()
        self.summarize = FittingPredict(SummarizeCommunity, shorten="elements")

    async def aforward(self, elements: Sequence[str]) -> dspy.Prediction:
        return _summary(await call(self.summarize, elements=list(elements)))

    forward = blocking(aforward)


class AskQuestion(SavableModule):
    """The representative question of a summary: f_theta of the KRAQ paper, section 2.

    Its signature is what a fine-tuned generator is trained on, so a summary alone goes in, as `shown_summary` puts it.
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.generate = FittingPredict(GenerateQuestion, shorten="summary")

    async def aforward(self, summary: str) -> dspy.Prediction:
        return _question(await call(self.generate, summary=summary))

    forward = blocking(aforward)


class AskRandomQuestion(SavableModule):
    """The papers' Random baseline: a question on a theme that some passages share."""

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.ask = FittingPredict(AskAboutPassages, shorten="passages")

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        return _question(await call(self.ask, passages=list(passages)))

    forward = blocking(aforward)


def _summary(answer: dspy.Prediction) -> dspy.Prediction:
    return dspy.Prediction(title=answer.title.strip(), summary=answer.summary.strip(), findings=tuple(answer.findings))


def _question(answer: dspy.Prediction) -> dspy.Prediction:
    """The first line that ends in a question mark, of any script; else the first that goes on after one, up to it; else
    the first line."""
    lines = [line.strip(" \t\"'*-") for line in answer.question.splitlines()]
    lines = [line for line in lines if line]
    questions = [line for line in lines if line.endswith(("?", "？", "؟", ";"))]
    begun = [begin[0] for line in lines if (begin := _UP_TO_MARK.match(line))]
    return dspy.Prediction(question=(questions or begun or lines or [""])[0])
