"""Answers from evidence for the question and for the stored questions nearest to it (KRAQ paper, 3.1)."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import SignatureLike, fitting_step, further_inputs, prediction
from kraq_dspy.ports import QuestionFinder, Retriever, RetrieverLike
from kraq_dspy.retrievers.combined import CombinedRetriever, SharingOptions, has_questions, require_questions
from kraq_dspy.retrievers.hits import RetrievalRequest
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion
from kraq_dspy.spec import Note, ProgramSpec, Space, option
from kraq_dspy.state import SavableModule


@dataclass(frozen=True)
class CombinedOptions(SharingOptions):
    """The number of passages, and how the question and its nearest stored questions share them."""

    k: int = option(15, "Passages in all (the papers' M).", least=1, counts="passages")
    explain: bool = option(False, "Also say what in the passages supports the answer.")


class CombinedRetrieveRAG(SavableModule):
    """Searches with the question and with the nearest stored questions, and answers once (KRAQ paper, Algorithm 1).

    Args:
        retrieve: a retriever, or any function that takes a question and returns texts (`as_retriever`).
        questions: the stored questions: a list of texts, or a question finder (`space.questions()`).
        k: the number of passages for an answer.
        n: the number of stored questions to search with.
        alpha: the share of `k` for the question itself, in [0, 1]. 1 gives TraditionalRAG.
        strict: retrieve as many passages as the paper. The paper rounds down twice, so it can retrieve fewer than `k`
            (`share_budget`).
        names: the number of central names to append to an auxiliary question. The paper has no such names.
        explain: whether a further step says what supports the answer.
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a count or an `alpha` out of range.
        TypeError: if `retrieve` is not a retriever, or `questions` are not questions.

    The prediction has `answer`, `hits` (each with `query` and `why`), `auxiliary_questions` (each with its similarity
    to the question) and `timings`: seconds for "retrieve", "answer" and "wall". With `explain` it also has
    `explanation`: what supports the answer (thesis, appendix 7.4). If the signature has further inputs, pass them
    with the question. The prediction has the further outputs.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> rag = CombinedRetrieveRAG(space.retriever("dense"), ["Who lived in London?"], k=2, n=1)
    >>> [hit.query for hit in space.ask("Where is London?", rag).hits]
    ['Where is London?', 'Who lived in London?']
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        questions: QuestionFinder | Sequence[str],
        k: int = CombinedOptions.k,
        n: int = CombinedOptions.n,
        alpha: float = CombinedOptions.alpha,
        strict: bool = False,
        explain: bool = False,
        signature: SignatureLike = None,
        names: int = 0,
    ) -> None:
        super().__init__()
        require_options(CombinedOptions, k=k)
        self.retrieve = CombinedRetriever(retrieve, questions, n=n, alpha=alpha, strict=strict, names=names)
        self.k = k
        self.answer = fitting_step(AnswerAndExplain if explain else AnswerQuestion, signature, "passages")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, "passages")
        clock = Clock()
        await clock.begin("retrieve", "retrieving")
        combined = await call(self.retrieve.search, RetrievalRequest(question, self.k))
        await clock.begin("answer", "answering")
        passages = [hit.chunk.passage for hit in combined.hits]
        reply = await call(self.answer, question=question, passages=passages, **further)
        return prediction(
            reply, hits=combined.hits, auxiliary_questions=combined.auxiliary_questions, timings=clock.timings()
        )


def make_combined(space: Space, retrieve: Retriever, options: CombinedOptions) -> CombinedRetrieveRAG:
    sizes = {name: value for name, value in asdict(options).items() if name != "questions"}
    if options.questions == "kraq" and not has_questions(space, "kraq"):
        sizes["alpha"] = 1.0  # retrieval alone: no names were found to ask about
    elif options.alpha < 1:
        require_questions(space, options.questions)
    return CombinedRetrieveRAG(retrieve, space.questions(options.questions), **sizes)


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """The explanation, if any; the stored questions that evidence was found with, and how similar to the user's."""
    if "explanation" in answer:
        yield Note("because ", answer.explanation, 600, "strong")
    for auxiliary in answer.auxiliary_questions:
        yield Note(f"  + {auxiliary.similarity:.2f} ", auxiliary.question.text, tone="found")


COMBINED = ProgramSpec(
    "combined",
    "Retrieves with your question and its nearest KRAQ questions.",
    make_combined,
    "CombinedRetrieveRAG",
    CombinedOptions,
    keys=("auxiliary_questions",),
    notes=notes,
    source="KRAQ paper, Algorithm 1",
)
