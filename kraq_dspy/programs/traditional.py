"""Retrieves once and answers once: the baseline that the other programs must beat (KRAQ paper, section 3)."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import SignatureLike, fitting_step, further_inputs, prediction
from kraq_dspy.ports import RetrieverLike
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion
from kraq_dspy.spec import Note, ProgramSpec, option
from kraq_dspy.state import SavableModule


@dataclass(frozen=True)
class TraditionalOptions:
    k: int = option(15, "Passages.", least=1, counts="passages")
    explain: bool = option(False, "Also say what in the passages supports the answer.")


class TraditionalRAG(SavableModule):
    """Searches once and answers once.

    Args:
        retrieve: a retriever, or any function that takes a question and returns texts (`as_retriever`).
        k: the number of passages for an answer.
        explain: whether a further step says what supports the answer.
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a number out of range.

    The prediction has `answer`, `hits` and `timings`: seconds for "retrieve", "answer" and "wall" (all together).
    With `explain` it also has `explanation`: what supports the answer (thesis, appendix 7.4). Without hits, the model
    answers without passages; the instructions tell the model to admit if it does not know. If the signature has
    further inputs, pass them with the question. The prediction has the further outputs.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> space.ask("Where did Ada live?", TraditionalRAG(space.retriever("bm25"), k=3)).answer
    'London. Ada lived in London.'
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        k: int = TraditionalOptions.k,
        explain: bool = False,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        require_options(TraditionalOptions, k=k)
        self.retrieve = as_retriever(retrieve)
        self.k = k
        self.answer = fitting_step(AnswerAndExplain if explain else AnswerQuestion, signature, "passages")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, "passages")
        clock = Clock()
        await clock.begin("retrieve", "retrieving")
        hits = await call(self.retrieve, question, self.k)
        await clock.begin("answer", "answering")
        passages = [hit.chunk.passage for hit in hits]
        reply = await call(self.answer, question=question, passages=passages, **further)
        return prediction(reply, hits=hits, timings=clock.timings())


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """Yield what supports the answer, with `explain`."""
    if "explanation" in answer:
        yield Note("because ", answer.explanation, 600, "strong")


TRADITIONAL = ProgramSpec(
    "traditional",
    "Retrieves once, with your question; the baseline.",
    lambda space, retrieve, options: TraditionalRAG(retrieve, **asdict(options)),
    "TraditionalRAG",
    TraditionalOptions,
    notes=notes,
    source="KRAQ paper, section 3",
)
