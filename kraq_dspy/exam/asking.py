"""Asks a question of each kind, and drops what cannot be one: no question, no answer of the text, a giveaway."""

from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict, SignatureLike, signature_for
from kraq_dspy.exam.kinds import KINDS
from kraq_dspy.exam.kinds.kind import texts_of
from kraq_dspy.programs.kraq.question_text import shares_a_word, stands_alone
from kraq_dspy.state import SavableModule


class AskForRow(SavableModule):
    """A question of one kind with its answers. `rejected` says why it is none; "" for a question that may be used.

    `signature` takes the place of the step's own: it needs the same outputs.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"question": "Where did Ada live?", "answer": "London"}])):
    ...     AskForRow("fact")(passage="Ada lived in London.", about=["Ada"]).answers
    ['London']
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "answers": list[str], "rejected": str}

    def __init__(self, kind: str, signature: SignatureLike = None) -> None:
        super().__init__()
        self.kind = kind
        own = KINDS[kind]
        self.ask = FittingPredict(signature_for(own.signature, signature), *own.shortened)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        reply = await call(self.ask, **inputs)
        question, answers, fault = KINDS[self.kind].read(reply, inputs)
        text = "\n".join(texts_of(inputs))
        if not fault and not (
            stands_alone(question, self.ask.signature.instructions) and shares_a_word(question, text)
        ):
            fault = "does not stand alone"
        return dspy.Prediction(question=question, answers=answers, rejected=fault)

    forward = blocking(aforward)
