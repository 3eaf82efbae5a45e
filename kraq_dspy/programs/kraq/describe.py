"""Describes entities and communities, and asks the question that stands for a community (KRAQ, stages 2, 4 and 5)."""

from collections.abc import Sequence
from typing import Any, ClassVar

import dspy
from dspy import ContextWindowExceededError
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict, Step, attempts, instructions_of, prediction
from kraq_dspy.programs.kraq.question_text import MARKS, PLAIN, plainness, question_in, repeats, stands_alone, with_mark
from kraq_dspy.records import Finding
from kraq_dspy.signatures.pipeline import without_findings
from kraq_dspy.state import SavableModule

SECOND_CALL = 1
"""How often a generator is asked once more where its question is not usable."""


def shown_summary(title: str, text: str) -> str:
    """A summary as the generator sees it, in training and when it is asked: its title, and the text below."""
    return f"{title}\n{text}" if title else text


class DescribeCommunity(SavableModule):
    """Writes title, summary and findings of a community. The input `elements` begins with the most important element.

    Args:
        findings: whether to ask for findings. They are about half of a reply, and a small model often
            breaks off in them.

    >>> from dspy.utils import DummyLM
    >>> reply = {"title": "Ada", "summary": " Ada lived in London.", "findings": "[]"}
    >>> with dspy.context(lm=DummyLM([reply])):
    ...     DescribeCommunity()(elements=["Ada | lived in | London"]).summary
    'Ada lived in London.'
    """

    outputs: ClassVar[dict[str, Any]] = {"title": str, "summary": str, "findings": tuple[Finding, ...]}

    def __init__(self, findings: bool = True) -> None:
        super().__init__()
        signature = signatures.SummarizeCommunity if findings else without_findings()
        self.summarize = FittingPredict(signature, shorten="elements")

    async def aforward(self, elements: Sequence[str]) -> dspy.Prediction:
        answer = await call(self.summarize, elements=list(elements))
        title, summary = answer.title.strip(), answer.summary.strip()
        return prediction(answer, title=title, summary=summary, findings=tuple(answer.get("findings") or ()))


class AskQuestion(SavableModule):
    """Writes the representative question of a summary (KRAQ paper, section 2).

    Args:
        candidates: the most questions to write, 1 or more. The module keeps the question with the plainest answer in
            a single sentence of the summary (`plainness`).

    The only input is a summary, because fine-tuned generators are trained on summaries (`shown_summary`). If the
    model repeats its instruction, asks about "the summary", or names nothing, the module calls the model again
    (`attempts`).

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"question": "1. Where did Ada live?"}])):
    ...     AskQuestion()(summary="Ada lived in London.").question
    'Where did Ada live?'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}
    candidates = 1

    def __init__(self, candidates: int = 1) -> None:
        super().__init__()
        self.generate = FittingPredict(signatures.GenerateQuestion, shorten="summary")
        if candidates > 1:  # else the program is what it was, and so are the answers that an index keeps
            self.candidates = candidates

    async def aforward(self, summary: str) -> dspy.Prediction:
        return await _asked(self.generate, summary, self.candidates, summary=summary)


class AskRandomQuestion(SavableModule):
    """Writes a question about a theme that some passages share: the papers' Random baseline.

    `candidates` is the most questions to write, as many as for the questions that the baseline is compared with.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"question": "Who lived in London?"}])):
    ...     AskRandomQuestion()(passages=["Ada lived in London.", "Byron lived in London."]).question
    'Who lived in London?'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}
    candidates = 1

    def __init__(self, candidates: int = 1) -> None:
        super().__init__()
        self.ask = FittingPredict(signatures.AskAboutPassages, shorten="passages")
        if candidates > 1:
            self.candidates = candidates

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        text = "\n".join(["", *passages])  # no title stands for all of them
        return await _asked(self.ask, text, self.candidates, passages=list(passages))


async def _asked(step: dspy.Module, text: str, candidates: int, **inputs: Any) -> dspy.Prediction:
    """The plainest of up to `candidates` questions about the text that stand alone.

    Where none does, the first with a question mark, or the first reply, that does not repeat its instructions.

    Raises ValueError if nothing was written.
    """
    instructions = instructions_of(step)
    again = max(SECOND_CALL, candidates - 1)
    questions: list[str] = []
    plain: dict[str, float] = {}
    for options in attempts(again):
        try:
            answer = await call(step, **inputs, **options)
        except AdapterParseError:
            if not questions:
                raise
            continue  # there is one that can be read
        questions.append(with_mark(question_in(answer.question)))
        if stands_alone(questions[-1], instructions):
            plain[questions[-1]] = plainness(questions[-1], text) if candidates > 1 else 1.0
            if len(plain) == candidates or plain[questions[-1]] >= PLAIN:
                break

    if plain:
        return dspy.Prediction(question=max(plain, key=plain.__getitem__))

    written = [question for question in questions if question]
    if not written:
        raise ValueError(f"The model was asked {1 + again} times and wrote no question.")
    own = [question for question in written if not repeats(instructions, question)] or written
    return dspy.Prediction(question=next((sentence for sentence in own if sentence.endswith(MARKS)), own[0]))


class ConfirmSame(SavableModule):
    """Decides whether two similar names mean the same thing. The inputs `first` and `second` are names, each with a
    description.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"same": "True"}])):
    ...     ConfirmSame()(first="EU: a union of states", second="European Union: a union").same
    True
    """

    outputs: ClassVar[dict[str, Any]] = {"same": bool}

    def __init__(self) -> None:
        super().__init__()
        self.confirm = Step(signatures.ConfirmSameEntity)

    async def aforward(self, first: str, second: str) -> dspy.Prediction:
        return await call(self.confirm, first=first, second=second)


class DescribeEntity(SavableModule):
    """Merges many descriptions of an entity into one description that has each fact once. If the descriptions are too
    long for the model, the module first merges each half of the descriptions.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"description": "Ada wrote notes and lived in London."}])):
    ...     DescribeEntity()(name="Ada", descriptions=["Ada wrote notes.", "Ada lived in London."]).description
    'Ada wrote notes and lived in London.'
    """

    outputs: ClassVar[dict[str, Any]] = {"description": str}

    def __init__(self) -> None:
        super().__init__()
        self.merge = Step(signatures.MergeDescriptions)

    async def aforward(self, name: str, descriptions: Sequence[str]) -> dspy.Prediction:
        try:
            answer = await call(self.merge, name=name, descriptions=list(descriptions))
        except ContextWindowExceededError:
            if len(descriptions) < 3:  # two halves give two descriptions: no progress
                raise
            middle = len(descriptions) // 2
            halves = descriptions[:middle], descriptions[middle:]
            merged = [(await call(self, name=name, descriptions=half)).description for half in halves]
            return await call(self, name=name, descriptions=merged)
        return prediction(answer, description=answer.description)
