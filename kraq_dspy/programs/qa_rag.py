"""Puts questions and passages into question-answer form before the answer (Roy et al., 2024)."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import dspy

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import (
    CALL_ERRORS,
    FittingPredict,
    SignatureLike,
    Step,
    fitting_step,
    further_inputs,
    log_failure,
    prediction,
)
from kraq_dspy.errors import ConfigError, counted
from kraq_dspy.ports import QAPairSource as QAPairSource, RetrieverLike
from kraq_dspy.records import Hit, QAPair
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.signatures import AnswerFromPairs, AnswerQuestion, CheckResponse, DecomposeQuestion, WriteQAPairs
from kraq_dspy.spec import Note, ProgramSpec, option
from kraq_dspy.state import SavableModule

logger = logging.getLogger(__name__)
VARIANTS = ("v", "type1", "type2")
UNKNOWN = "I do not know"


class WritePairs(SavableModule):
    """Writes the question-answer pairs of one passage, in reading order. The module drops repeated pairs, and pairs
    without a question or an answer.

    >>> from dspy.utils import DummyLM
    >>> reply = {"pairs": '[{"question": "Where did Ada live?", "answer": "London"}]'}
    >>> with dspy.context(lm=DummyLM([reply])):
    ...     WritePairs()(passage="Ada lived in London.").pairs
    (QAPair(question='Where did Ada live?', answer='London'),)
    """

    outputs: ClassVar[dict[str, Any]] = {"pairs": tuple[QAPair, ...]}

    def __init__(self) -> None:
        super().__init__()
        self.write = FittingPredict(WriteQAPairs, shorten="passage")

    async def aforward(self, passage: str) -> dspy.Prediction:
        by_question: dict[str, QAPair] = {}
        reply = await call(self.write, passage=passage)
        for pair in reply.pairs or ():
            question, answer = pair.question.strip(), pair.answer.strip()
            if question and answer:
                by_question.setdefault(question, QAPair(question, answer))
        return dspy.Prediction(pairs=tuple(by_question.values()))


@dataclass(frozen=True)
class QARAGOptions:
    k: int = option(10, "Passages.", least=1, counts="passages")
    variant: Literal["v", "type1", "type2"] = option(
        "type2", "v (no plug-ins), type1 (both), type2 (and the answer is judged)."
    )


class QARAG(SavableModule):
    """Turns the passages into question-answer pairs, and answers from the pairs (QA-RAG paper).

    Args:
        retrieve: a retriever, or any function that takes a question and returns texts (`as_retriever`).
        stored: question-answer pairs from `kraq precompute DIR qa-pairs`.
        k: the number of passages to retrieve.
        variant: "v", "type1" or "type2".
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for an unknown `variant`, or for a `signature` without the output `answer`.
        ValueError: for a number out of range.

    The variant "v" is Traditional RAG. "type1" splits the question into sub-questions, and turns the passages into
    pairs. "type2" also lets a validator judge the answer by the question and the pairs. If the validator rejects the
    answer, the program answers "I do not know".

    If a passage has no stored pairs, one call makes the pairs of this passage. (In the paper, one call makes the
    pairs of all passages, so nothing could be stored for a single passage.) If no pair can be made of a passage, the
    model sees the passage itself. If the question cannot be split, the question is the only sub-question.

    The prediction has `answer`, `hits`, `sub_questions`, `pairs`, `n_looked_up`, `n_made`, `n_failed` (passages),
    `response` (the answer before the validator), `valid` (None without a validator) and `timings`: seconds for
    "retrieve", "plug_ins", "answer", "check" and "wall".

    >>> from kraq_dspy import Corpus, make_lm
    >>> rag = QARAG(Corpus.from_texts(["Ada lived in London.", "Byron wrote Don Juan."]).retriever, k=1)
    >>> rag.set_lm(make_lm("embedded"))
    >>> prediction = rag(question="Where did Ada live?")
    >>> prediction.answer, prediction.n_made
    ('London. Ada lived in London.', 1)
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        stored: QAPairSource | None = None,
        k: int = QARAGOptions.k,
        variant: str = "type2",
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        require_options(QARAGOptions, k=k)
        if variant not in VARIANTS:
            raise ConfigError(f"There is no variant {variant!r} of QA-RAG; there are: {', '.join(VARIANTS)}.")

        self.retrieve = as_retriever(retrieve)
        self.stored = stored
        self.k = k
        self.variant = variant
        if variant == "v":
            self.answer = fitting_step(AnswerQuestion, signature, "passages")
            return

        self.decompose = Step(DecomposeQuestion)
        self.write_pairs = WritePairs()
        self.answer = fitting_step(AnswerFromPairs, signature, "pairs")
        if variant == "type2":
            self.check = FittingPredict(CheckResponse, shorten="context")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        filled = ("passages",) if self.variant == "v" else ("sub_questions", "pairs")
        further = further_inputs(self.answer, inputs, *filled)
        clock = Clock()
        await clock.begin("retrieve", "retrieving")
        hits = await call(self.retrieve, question, self.k)
        if self.variant == "v":
            return await self._answer_from_passages(question, hits, further, clock)

        await clock.begin("plug_ins", "pairing questions and answers")
        stored: dict[str, tuple[QAPair, ...]] = {}
        if self.stored is not None:
            stored = dict(await call(self.stored.pairs_of, [hit.chunk.id for hit in hits]))
        missing = [hit for hit in hits if hit.chunk.id not in stored]
        passages = [hit.chunk.passage for hit in missing]
        parts, *replies = await at_once(lambda passage: self._plug_in(question, passage), [None, *passages])
        n_made = sum(reply is not None for reply in replies)
        pairs_of = dict(stored)
        for hit, made in zip(missing, replies, strict=True):
            pairs_of[hit.chunk.id] = made.pairs if made else ()
        sub_questions = _sub_questions(parts) or [question]
        context = _pairs_or_passages(hits, pairs_of)

        await clock.begin("answer", "answering")
        parts_and_pairs = {"sub_questions": sub_questions, "pairs": context}
        reply = await call(self.answer, question=question, **parts_and_pairs, **further)
        valid = None
        if self.variant == "type2":
            await clock.begin("check", "checking")
            verdict = await call(self.check, question=question, context=context, response=reply.answer)
            valid = verdict.valid == "yes"
        return prediction(
            reply,
            answer=UNKNOWN if valid is False else reply.answer,
            hits=hits,
            sub_questions=sub_questions,
            pairs=[pair for hit in hits for pair in pairs_of[hit.chunk.id]],
            n_looked_up=len(stored),
            n_made=n_made,
            n_failed=len(replies) - n_made,
            response=reply.answer,
            valid=valid,
            timings=clock.timings(),
        )

    async def _answer_from_passages(
        self, question: str, hits: Sequence[Hit], further: Mapping[str, Any], clock: Clock
    ) -> dspy.Prediction:
        """Answer without plug-ins: the paper's variant "v"."""
        await clock.begin("answer", "answering")
        passages = [hit.chunk.passage for hit in hits]
        reply = await call(self.answer, question=question, passages=passages, **further)

        return prediction(
            reply,
            hits=hits,
            response=reply.answer,
            valid=None,
            timings=clock.timings(),
            sub_questions=[],
            pairs=[],
            n_looked_up=0,
            n_made=0,
            n_failed=0,
        )

    async def _plug_in(self, question: str, passage: str | None) -> dspy.Prediction | None:
        """The passage's pairs, or, for None, the question's parts; None if the call failed."""
        try:
            if passage is None:
                return await call(self.decompose, question=question)
            return await call(self.write_pairs, passage=passage)
        except CALL_ERRORS as error:
            log_failure(logger, "A plug-in failed", error)
            return None


def _sub_questions(parts: dspy.Prediction | None) -> list[str]:
    """The parts of the question, each once; none if the model could not split it."""
    stripped = [] if parts is None else [part.strip() for part in parts.sub_questions or ()]
    return list(dict.fromkeys(filter(None, stripped)))


def _pairs_or_passages(hits: Sequence[Hit], pairs_of: Mapping[str, Sequence[QAPair]]) -> list[str]:
    """The evidence for the answer: the pairs of each passage, or the passage itself if it has
    none."""
    context: list[str] = []
    for hit in hits:
        pairs = [f"{pair.question}\n{pair.answer}" for pair in pairs_of[hit.chunk.id]]
        context += pairs or [hit.chunk.passage]
    return context


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """The parts of the question, how many pairs there were and where they came from, and the validator's verdict.

    Nothing for the variant without plug-ins.
    """
    if not answer.sub_questions:
        return
    for part in answer.sub_questions:
        yield Note("  ? ", part, tone="found")

    counts = [(answer.n_looked_up, "looked up"), (answer.n_made, "made now"), (answer.n_failed, "failed")]
    passages = ", ".join(f"{count} {what}" for count, what in counts if count)
    yield Note(f"{counted(len(answer.pairs), 'question-answer pair')}; passages: {passages or 'none'}")
    if answer.valid is False:
        yield Note("judged wrong: ", answer.response, 300, "doubtful")


QA_RAG = ProgramSpec(
    "qa-rag",
    "Question and passages become question-answer pairs, and the answer is judged.",
    lambda space, retrieve, options: QARAG(retrieve, space.stored_pairs, k=options.k, variant=options.variant),
    "QARAG",
    QARAGOptions,
    prepared=("qa-pairs",),
    needs_prepared=lambda options: options.variant != "v",
    keys=("sub_questions", "pairs", "n_looked_up", "n_made", "n_failed", "response", "valid"),
    notes=notes,
    source="QA-RAG paper, listings 6 to 9",
)
