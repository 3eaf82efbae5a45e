"""Checks a question by reading: it stands alone, and who reads its passages again comes to the same answer."""

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict, Step
from kraq_dspy.exam.kinds import KINDS
from kraq_dspy.state import SavableModule

STANDS_ALONE, READ_AGAIN = "stands alone", "read again"


class CheckRow(SavableModule):
    """Which checks a question passes, in `passed`, and the one that it failed, in `rejected` ("" for none).

    A reader that has never seen the answer answers from the passages, and the two answers are compared. Nobody reads a
    broad question again, since no two accounts of much are alike, nor one `by_parse` of a sentence, whose answer is the
    part of the sentence that was asked for.

    >>> from dspy.utils import DummyLM
    >>> replies = [{"stands_alone": "True"}, {"answer": "In London"}, {"same": "True"}]
    >>> with dspy.context(lm=DummyLM(replies)):
    ...     CheckRow()("fact", "Where did Ada live?", ["London"], ["Ada lived in London."]).passed
    ['stands alone', 'read again']
    """

    outputs: ClassVar[dict[str, Any]] = {"passed": list[str], "rejected": str}

    def __init__(self) -> None:
        super().__init__()
        self.alone = Step(signatures.CheckStandAlone)
        self.read = FittingPredict(signatures.AnswerQuestion, "passages")
        self.compare = Step(signatures.CheckSameAnswer)

    async def aforward(
        self, kind: str, question: str, answers: Sequence[str], passages: Sequence[str], *, by_parse: bool = False
    ) -> dspy.Prediction:
        if not (await call(self.alone, question=question)).stands_alone:
            return dspy.Prediction(passed=[], rejected=STANDS_ALONE)
        if by_parse or not KINDS[kind].is_read_again:
            return dspy.Prediction(passed=[STANDS_ALONE], rejected="")

        read = (await call(self.read, question=question, passages=list(passages))).answer or ""
        own = "; ".join(answers)
        if not (await call(self.compare, question=question, first_answer=read, second_answer=own)).same:
            return dspy.Prediction(passed=[STANDS_ALONE], rejected=READ_AGAIN)
        return dspy.Prediction(passed=[STANDS_ALONE, READ_AGAIN], rejected="")

    forward = blocking(aforward)


class CheckGold(SavableModule):
    """Whether a passage by itself tells the answer to the question.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"answered": "True"}])):
    ...     CheckGold()("Where did Ada live?", "London", "Ada lived in London.").answered
    True
    """

    outputs: ClassVar[dict[str, Any]] = {"answered": bool}

    def __init__(self) -> None:
        super().__init__()
        self.answered = FittingPredict(signatures.CheckAnswered, "passage")

    async def aforward(self, question: str, answer: str, passage: str) -> dspy.Prediction:
        reply = await call(self.answered, question=question, answer=answer, passage=passage)
        return dspy.Prediction(answered=bool(reply.answered))

    forward = blocking(aforward)
