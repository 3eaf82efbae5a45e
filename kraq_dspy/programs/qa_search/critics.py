"""Makes question-answer pairs from passages, and lets only good ones pass (QA search paper, 4.2).

Three critics rate, as in the paper. Some models are too small to rate: Qwen2.5-Coder of 0.5 and 1.5
billion parameters rate right and wrong pairs alike (benchmarks/results/qa-search.md). They try a pair
instead. Its question must lead back to its passage, in place of "stand alone" (Promptagator: Dai et
al., 2022, arXiv 2209.11755, 3.2). The passage must lead to its answer, in place of "groundedness"
(roundtrip consistency: Alberti et al., 2019, arXiv 1906.05416).
"""

from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict, Step, instructions_of, prediction
from kraq_dspy.language.text import words
from kraq_dspy.ports import Retriever
from kraq_dspy.programs.kraq.question_text import question_in, shares_a_word, stands_alone
from kraq_dspy.records import Chunk
from kraq_dspy.signatures import AnswerQuestion, RateGroundedness, RateRelevance, RateStandAlone, WriteFactoidPair
from kraq_dspy.state import SavableModule

CRITICS = ("groundedness", "relevance", "stand_alone")
BEST = 5
MOST_WORDS = 30
"""Of a question that somebody would type; a longer one repeats the passage."""


class WriteSyntheticPair(SavableModule):
    """Writes a question about a short fact in a passage, and the answer.

    The prediction has `question` and `answer`. Both are "" if the model writes no usable pair: a statement instead of
    a question, a question about "the text", or a question that contains its answer ("What is the name of Exxon?").

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"question": "Where did Ada live?", "answer": "London"}])):
    ...     WriteSyntheticPair()(passage="Ada lived in London.").answer
    'London'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "answer": str}

    def __init__(self) -> None:
        super().__init__()
        self.write = FittingPredict(WriteFactoidPair, shorten="passage")

    async def aforward(self, passage: str) -> dspy.Prediction:
        written = await call(self.write, passage=passage)
        question = question_in(str(written.question or ""))
        answer = str(written.answer or "").strip()

        is_usable = (
            answer
            and len(question.split()) <= MOST_WORDS
            and not tells(question, answer)
            and stands_alone(question, instructions_of(self.write))
            and shares_a_word(question, passage)
        )
        if not is_usable:
            question = answer = ""
        return prediction(written, question=question, answer=answer)


class RateSyntheticPair(SavableModule):
    """Lets three critics rate a question-answer pair, and stops at the first rating below `least` (QA search paper).

    Args:
        audience: the people who will ask. One critic rates whether the question is relevant to the audience.
        least: the least rating that passes, 1 to 5.

    Raises:
        ValueError: for a `least` out of range, or an empty audience.

    The prediction has `ratings` by critic, and `rejected_by`: the critic that rejected the pair, or "".

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"evaluation": "It does not say.", "groundedness": "2"}])):
    ...     RateSyntheticPair("readers")(question="When was she born?", answer="1815", passage="Ada.").rejected_by
    'groundedness'
    """

    outputs: ClassVar[dict[str, Any]] = {"ratings": dict[str, int], "rejected_by": str}

    def __init__(self, audience: str, least: int = BEST) -> None:
        super().__init__()
        if not 1 <= least <= BEST:
            raise ValueError(f"least is {least}; ratings go from 1 to {BEST}.")
        if not audience.strip():
            raise ValueError("The audience is empty; say who will ask.")
        self.audience = audience
        self.least = least
        self.groundedness = FittingPredict(RateGroundedness, shorten="passage")
        self.relevance = Step(RateRelevance)
        self.stand_alone = Step(RateStandAlone)

    async def aforward(self, question: str, answer: str, passage: str) -> dspy.Prediction:
        ratings: dict[str, int] = {}
        critics: tuple[tuple[str, dspy.Module, dict[str, str]], ...] = (  # the one that rejects most first
            ("groundedness", self.groundedness, {"question": question, "answer": answer, "passage": passage}),
            ("relevance", self.relevance, {"audience": self.audience, "question": question}),
            ("stand_alone", self.stand_alone, {"question": question}),
        )
        for name, step, inputs in critics:
            reply = await call(step, **inputs)
            ratings[name] = reply[name]
            if ratings[name] < self.least:
                return dspy.Prediction(ratings=ratings, rejected_by=name)
        return dspy.Prediction(ratings=ratings, rejected_by="")


def tells(question: str, answer: str) -> bool:
    """Whether the question has all words of the answer, as no alternative of two ("Is it a city or a band?")."""
    question_words = words(question)
    return "or" not in question_words and set(words(answer)) <= set(question_words)


RETRIEVAL, REREADING = "retrieval", "rereading"
FIRST = 5
"""Passages that are retrieved with a pair's question; its own must be among them."""
ALIKE = 0.5
_ARTICLES = frozenset(("a", "an", "the"))


class RereadSyntheticPair(SavableModule):
    """Answers the question of a pair again from the passage, and compares both answers.

    The prediction has `again`, the model's answer, and `rejected_by`: "" if both answers say the same
    (`same_answer`), otherwise "rereading".

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"answer": "In London."}])):
    ...     RereadSyntheticPair()(question="Where did Ada live?", answer="London", passage="Ada lived in London.").again
    'In London.'
    """

    outputs: ClassVar[dict[str, Any]] = {"again": str, "rejected_by": str}

    def __init__(self) -> None:
        super().__init__()
        self.answer = FittingPredict(AnswerQuestion, shorten="passages")

    async def aforward(self, question: str, answer: str, passage: str) -> dspy.Prediction:
        reply = await call(self.answer, question=question, passages=[passage])
        again = str(reply.answer or "")
        rejected_by = "" if same_answer(question, answer, again) else REREADING
        return dspy.Prediction(again=again, rejected_by=rejected_by)


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
    gold, given, in_question = (set(words(text)) - _ARTICLES for text in (answer, again, question))
    if not gold or not given:
        return False
    return (gold <= given and not gold <= in_question) or 2 * len(gold & given) >= ALIKE * (len(gold) + len(given))
