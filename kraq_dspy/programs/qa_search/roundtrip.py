"""Tries synthetic pairs instead of rating them: the question must lead back to its passage, the passage to the answer.

For models that are too small to rate: Qwen2.5-Coder of 0.5 and 1.5 billion parameters rate right pairs and wrong ones
alike, and tell them apart when they answer (docs/results/qa-search.md). The first trial is the filter of Promptagator
(Dai et al., 2022, arXiv 2209.11755, 3.2), and stands in for "stand alone": what says too little to be understood says
too little to be found. The second is roundtrip consistency (Alberti et al., 2019, arXiv 1906.05416), and stands in for
"groundedness". Relevance to an audience is not tried.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.models.lms.engines.embedded.text import words
from kraq_dspy.ports import Retriever
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.records import Chunk
from kraq_dspy.signatures import AnswerQuestion

RETRIEVAL, REREADING = "retrieval", "rereading"
FIRST = 5
"""Passages that are retrieved with a pair's question; its own must be among them."""
ALIKE = 0.5
_ARTICLES = frozenset(("a", "an", "the"))


class RereadSyntheticPair(SavableModule):
    """Answers the question from the passage again; `rejected_by` is "rereading" unless that gives the pair's answer.

    `again` is what the model said.
    """

    asks: Mapping[str, str] = {"answer": "question, passages -> answer"}
    outputs: ClassVar[dict[str, Any]] = {"again": str, "rejected_by": str}

    def __init__(self) -> None:
        super().__init__()
        self.answer = FittingPredict(AnswerQuestion, shorten="passages")

    async def aforward(self, question: str, answer: str, passage: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.answer, question=question, passages=[passage])
        again = str(reply.answer or "")
        rejected_by = "" if same_answer(question, answer, again) else REREADING
        return prediction(extra_outputs(reply, "answer"), again=again, rejected_by=rejected_by)

    forward = blocking(aforward)


async def leads_back(question: str, chunk: Chunk, retriever: Retriever) -> bool:
    """Whether a part of the chunk is among the first `FIRST` hits. Chunks may be cut otherwise than the retriever's."""
    hits = await call(retriever, question, FIRST)
    return any(
        hit.chunk.document_id == chunk.document_id and hit.chunk.start < chunk.end and chunk.start < hit.chunk.end
        for hit in hits
    )


def same_answer(question: str, answer: str, again: str) -> bool:
    """Whether `again` tells the answer: it holds all of its words, or they share as many as F1 `ALIKE` takes.

    Articles do not count. An answer whose words all stand in the question must be alike: a sentence that restates the
    question would hold it.
    """
    told, said, asked = (set(words(text)) - _ARTICLES for text in (answer, again, question))
    if not told or not said:
        return False
    return (told <= said and not told <= asked) or 2 * len(told & said) >= ALIKE * (len(told) + len(said))
