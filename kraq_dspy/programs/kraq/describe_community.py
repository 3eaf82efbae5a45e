"""Says what a community is about, and asks the question that stands for it (KRAQ, stages 4 and 5)."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy.programs.both_ways import blocking, call
from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.programs.state import SavableModule
from kraq_dspy.records import Finding
from kraq_dspy.signatures import AskAboutPassages, GenerateQuestion, SummarizeCommunity

AGAIN = 2
_MARKS = ("?", "？", "؟", ";")
_UP_TO_MARK = re.compile(r".*[?？؟]")
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)
_ABOUT_TEXT = re.compile(
    r"\bthe (?:\w+ )?summar(?:y|ies)\b|\b(?:this|the given) (?:text|article|passage|summary)\b", re.IGNORECASE
)
_ECHO = 5  # words of the instructions in a row


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
    Small models repeat their instruction or ask about "the summary"; then they are asked up to `AGAIN` times more, with
    a temperature.
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.generate = FittingPredict(GenerateQuestion, shorten="summary")

    async def aforward(self, summary: str) -> dspy.Prediction:
        return await _asked(self.generate, summary=summary)

    forward = blocking(aforward)


class AskRandomQuestion(SavableModule):
    """The papers' Random baseline: a question on a theme that some passages share."""

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.ask = FittingPredict(AskAboutPassages, shorten="passages")

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        return await _asked(self.ask, passages=list(passages))

    forward = blocking(aforward)


def _summary(answer: dspy.Prediction) -> dspy.Prediction:
    return dspy.Prediction(title=answer.title.strip(), summary=answer.summary.strip(), findings=tuple(answer.findings))


async def _asked(step: dspy.Module, **inputs: Any) -> dspy.Prediction:
    """The first question that stands alone; else the first with a question mark, or what was written first."""
    instructions = "\n".join(predictor.signature.instructions for predictor in step.predictors())
    questions: list[dspy.Prediction] = []
    for config in ({}, *({"temperature": 1.0, "rollout_id": number} for number in range(1, AGAIN + 1))):
        questions.append(_question(await call(step, **inputs, **({"config": config} if config else {}))))
        if stands_alone(questions[-1].question, instructions):
            return questions[-1]
    return next((one for one in questions if one.question.endswith(_MARKS)), questions[0])


def stands_alone(question: str, instructions: str) -> bool:
    """Whether it can be asked by somebody who does not see the text: it has a question mark, where its script does, and
    does not speak of "the summary" or repeat five words of the instructions."""
    words, task = _words(question), _words(instructions)
    repeated = {words[at : at + _ECHO] for at in range(len(words) - _ECHO + 1)}
    is_echo = any(task[at : at + _ECHO] in repeated for at in range(len(task) - _ECHO + 1))
    lacks_mark = _LATIN.search(question) is not None and not question.endswith(_MARKS)
    return bool(words) and not (is_echo or lacks_mark or _ABOUT_TEXT.search(question))


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))


def _question(answer: dspy.Prediction) -> dspy.Prediction:
    """The first line that ends in a question mark, of any script; else the first that goes on after one, up to it; else
    the first line."""
    lines = [line.strip(" \t\"'*-") for line in answer.question.splitlines()]
    lines = [line for line in lines if line]
    questions = [line for line in lines if line.endswith(_MARKS)]
    begun = [begin[0] for line in lines if (begin := _UP_TO_MARK.match(line))]
    return dspy.Prediction(question=(questions or begun or lines or [""])[0])
