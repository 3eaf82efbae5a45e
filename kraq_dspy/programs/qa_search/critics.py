"""Makes question-answer pairs from passages; three critics let only the best pass (QA search paper, 4.2)."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict, Step
from kraq_dspy.models.lms.engines.embedded.text import words
from kraq_dspy.programs.kraq.question_text import question_in, stands_alone
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.signatures import RateGroundedness, RateRelevance, RateStandAlone, WriteFactoidPair

CRITICS = ("groundedness", "relevance", "stand_alone")
BEST = 5
MOST_WORDS = 30
"""Of a question that somebody would type; a longer one repeats the passage."""


class WriteSyntheticPair(SavableModule):
    """One question that the passage answers with a short fact.

    Both are "" where the model found none, or wrote what is no pair: a sentence of the passage in place of a question,
    a question about "the text", an answer that the question tells ("What is the name of Exxon?").
    """

    asks: Mapping[str, str] = {"write": "passage -> question, answer"}
    outputs: ClassVar[dict[str, Any]] = {"question": str, "answer": str}

    def __init__(self) -> None:
        super().__init__()
        self.write = FittingPredict(WriteFactoidPair, shorten="passage")

    async def aforward(self, passage: str) -> dspy.Prediction:
        check_steps(self)
        written = await call(self.write, passage=passage)
        question, answer = question_in(str(written.question or "")), str(written.answer or "").strip()
        if not self._is_pair(question, answer, passage):
            question = answer = ""
        return prediction(dict(written.items()), question=question, answer=answer)

    forward = blocking(aforward)

    def _is_pair(self, question: str, answer: str, passage: str) -> bool:
        if not answer or len(question.split()) > MOST_WORDS or tells(question, answer):
            return False
        instructions = "\n".join(predictor.signature.instructions for predictor in self.write.predictors())
        return stands_alone(question, passage, instructions)


class RateSyntheticPair(SavableModule):
    """Three critics, one after the other, until one gives less than `least` of 5.

    The prediction has `ratings` by critic, of those that were asked, and `rejected_by`, the critic that did not let it
    pass, or "". A rating that is no whole number from 1 to 5 raises ValueError: it must not pass for praise.

    Raises ValueError for a `least` that is no such number, or an empty audience.
    """

    asks: Mapping[str, str] = {
        "groundedness": "question, answer, passage -> groundedness",
        "relevance": "audience, question -> relevance",
        "stand_alone": "question -> stand_alone",
    }
    outputs: ClassVar[dict[str, Any]] = {"ratings": dict[str, int], "rejected_by": str}

    def __init__(self, audience: str, least: int = BEST) -> None:
        super().__init__()
        if not 1 <= least <= BEST:
            raise ValueError(f"least is {least}; ratings go from 1 to {BEST}.")
        if not audience.strip():
            raise ValueError("The audience is empty; say who is to be answered.")
        self.audience = audience
        self.least = least
        self.groundedness = FittingPredict(RateGroundedness, shorten="passage")
        self.relevance = Step(RateRelevance)
        self.stand_alone = Step(RateStandAlone)

    async def aforward(self, question: str, answer: str, passage: str) -> dspy.Prediction:
        check_steps(self)
        ratings: dict[str, int] = {}
        extras: dict[str, Any] = {}
        for name, step, inputs in self._critics(question, answer, passage):
            reply = await call(step, **inputs)
            ratings[name] = rating(reply[name])
            extras.update(extra_outputs(reply, name, "evaluation"))
            if ratings[name] < self.least:
                return prediction(extras, ratings=ratings, rejected_by=name)
        return prediction(extras, ratings=ratings, rejected_by="")

    forward = blocking(aforward)

    def _critics(self, question: str, answer: str, passage: str) -> Iterator[tuple[str, dspy.Module, dict[str, str]]]:
        """(name, step, inputs), the one that rejects most first."""
        yield "groundedness", self.groundedness, {"question": question, "answer": answer, "passage": passage}
        yield "relevance", self.relevance, {"audience": self.audience, "question": question}
        yield "stand_alone", self.stand_alone, {"question": question}


def rating(value: Any) -> int:
    """Raises ValueError for anything but a whole number from 1 to 5."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= BEST:
        raise ValueError(f"A critic rated {value!r}; expected a whole number from 1 to {BEST}.")
    return value


def tells(question: str, answer: str) -> bool:
    """Whether the question has all words of the answer, as no alternative of two ("Is it a city or a band?")."""
    asked = words(question)
    return "or" not in asked and set(words(answer)) <= set(asked)
