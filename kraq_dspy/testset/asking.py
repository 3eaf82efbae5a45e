"""Asks a model for the questions of a test set: DSPy modules that ask, check by reading, and put in other words."""

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict, SignatureLike, Step, signature_for
from kraq_dspy.language.text import with_another_name
from kraq_dspy.programs.kraq.question_text import MARKS, names_in, question_in, shares_a_word, stands_alone
from kraq_dspy.state import SavableModule
from kraq_dspy.testset.kind import texts_of
from kraq_dspy.testset.kinds import KINDS


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

        keeps_names = all(name in paraphrase.casefold() for name in names_in(question))
        return dspy.Prediction(question=paraphrase if paraphrase.endswith(MARKS) and keeps_names else question)
