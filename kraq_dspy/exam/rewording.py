"""Changes a question that was asked: to other words, or to another name, so that it supposes what is not so."""

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.embedded.names import with_another_name
from kraq_dspy.programs.kraq.question_text import MARKS, question_in
from kraq_dspy.state import SavableModule

_AROUND_WORDS = "?,.;:!()'\"“”‘’؟？"


class SupposeOfAnother(SavableModule):
    """The question with another name in the place of one of its own, so that it supposes what is not so.

    If the model keeps the name, or asks nothing, the other name is put in as it stands: small models often copy the
    question.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"changed": "Where did Eve live?"}])):
    ...     SupposeOfAnother()(question="Where did Ada live?", name="Ada", other="Eve").question
    'Where did Eve live?'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "rejected": str}

    def __init__(self) -> None:
        super().__init__()
        self.change = Step(signatures.AskFalsePremise)

    async def aforward(self, question: str, name: str, other: str) -> dspy.Prediction:
        reply = await call(self.change, question=question, name=name, other=other)
        changed = question_in(reply.changed or "")
        if other not in changed or name in changed or not changed.endswith(MARKS):
            changed = with_another_name(question, name, other)
        return dspy.Prediction(question=changed, rejected="" if changed != question else "was not changed")

    forward = blocking(aforward)


class PutOtherwise(SavableModule):
    """The question in other words; the question itself where the model loses a name of it, or asks nothing.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"paraphrase": "In which city was Ada's home?"}])):
    ...     PutOtherwise()(question="Where did Ada live?", avoid=["live"]).question
    "In which city was Ada's home?"
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.paraphrase = Step(signatures.ParaphraseQuestion)

    async def aforward(self, question: str, avoid: Sequence[str]) -> dspy.Prediction:
        reply = await call(self.paraphrase, question=question, avoid=list(avoid))
        paraphrase = question_in(reply.paraphrase or "")

        words = [word.strip(_AROUND_WORDS) for word in question.split()[1:]]  # the first is a question's word
        names = [word for word in words if word[:1].isupper() or word[:1].isdigit()]
        keeps_names = all(name in paraphrase for name in names)
        return dspy.Prediction(question=paraphrase if paraphrase.endswith(MARKS) and keeps_names else question)

    forward = blocking(aforward)
