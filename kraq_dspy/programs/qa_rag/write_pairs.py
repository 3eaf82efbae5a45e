"""Writes a passage as question-answer pairs, once or when asked for: QA-RAG's context plug-in."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.records import QAPair
from kraq_dspy.signatures import WriteQAPairs


class QAPairSource(Protocol):
    """Looks up the pairs that were made of chunks in advance."""

    def pairs_of(self, chunk_ids: Sequence[str]) -> dict[str, tuple[QAPair, ...]]:
        """By chunk id; a chunk whose pairs were not made is left out."""


class WritePairs(SavableModule):
    """The pairs of one passage, in reading order. Pairs without a question or an answer, and repeats, are dropped."""

    asks: Mapping[str, str] = {"write": "passage -> pairs"}
    outputs: ClassVar[dict[str, Any]] = {"pairs": tuple[QAPair, ...]}

    def __init__(self) -> None:
        super().__init__()
        self.write = FittingPredict(WriteQAPairs, shorten="passage")

    async def aforward(self, passage: str) -> dspy.Prediction:
        check_steps(self)
        by_question: dict[str, QAPair] = {}
        reply = await call(self.write, passage=passage)
        for pair in reply.pairs or ():
            question, answer = pair.question.strip(), pair.answer.strip()
            if question and answer:
                by_question.setdefault(question, QAPair(question, answer))
        return prediction(extra_outputs(reply, "pairs"), pairs=tuple(by_question.values()))

    forward = blocking(aforward)
