"""Pre-computes E(d|q) selectively: for each question its top-N passages (KRAQ paper, appendix D.3)."""

import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedRow, InstructedStore, Precision
from kraq_dspy.errors import IndexStateError, ModelError
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.ports import ChunkSource, InstructedEmbedder, Progress, SilentProgress, VectorStore
from kraq_dspy.programs.shared.spec import option
from kraq_dspy.records import Question
from kraq_dspy.settings import Settings

logger = logging.getLogger(__name__)

STAGE = "precompute"

_PAIRS_PER_TRANSACTION = 1000  # What a kill costs at most, besides one question.
_QUESTIONS_PER_SEARCH = 32
_SAMPLE_PAIRS = 64
_SAMPLE_QUESTIONS = 64


@dataclass(frozen=True)
class InstructedOptions:
    """What is embedded as seen from which questions."""

    top_n: int | None = option(100, "Passages for each question; none for all.", least=1)
    int8: bool = option(False, "Half the size of float16, a little less exact.")
    questions: Literal["kraq", "random", "all"] = option(
        "kraq", "Questions to do it for: kraq, random (the papers' baseline) or all."
    )


@dataclass(frozen=True, slots=True)
class PrecomputeEstimate:
    """What a run will take: `pairs` is the number of encoder passes, `n_bytes` what they add to the disk.

    `seconds` is extrapolated from a few timed passes. Pairs of stored questions are estimated from a sample of them.
    """

    questions: int
    pairs: int
    seconds: float
    n_bytes: int
    pairs_stored: int


@dataclass(frozen=True, slots=True)
class PrecomputeReport:
    """What a run did. `failures` are (question id, reason), `questions_left` those that its budget did not reach."""

    questions: int
    pairs_embedded: int
    pairs_kept: int
    questions_removed: int
    seconds: float
    n_bytes: int
    failures: tuple[tuple[str, str], ...] = ()
    questions_left: int = 0


@dataclass(frozen=True)
class Precomputation:
    """The work of `kraq precompute`, question by question in the order given. `top_n` None means all passages.

    It may be killed and run again: what is stored is kept. Questions and passages that came since are added; a
    passage that left a question's top N goes when its row is written next, a question that left the index at once.
    """

    questions: Sequence[Question]
    question_vectors: VectorStore
    chunk_vectors: VectorStore
    chunks: ChunkSource
    store: InstructedStore
    embedder: InstructedEmbedder
    top_n: int | None = 100
    seed: int = 0

    @classmethod
    def of(
        cls,
        index: Index,
        embedder: InstructedEmbedder,
        *,
        top_n: int | None = 100,
        precision: Precision = "float16",
        source: str | None = None,
    ) -> "Precomputation":
        """The work for the questions of an index that is open for writing: `source` "kraq", "random", or None for both.

        Those about the most passages come first: they stand in for more of the questions that may come.

        Raises IndexStateError for an index without questions or without chunks, EncoderMismatchError when another
        encoder or precision has begun.
        """
        questions = sorted(index.questions(source=source), key=lambda question: -len(question.chunk_ids))
        if not questions:
            raise IndexStateError(
                f"{str(index.path)!r} has no questions to pre-compute for. Finish the build: "
                f"kraq index CORPUS --out {index.path}"
            )
        store = InstructedStore.create(
            index.path / INSTRUCTED, encoder_name=embedder.name, dimension=embedder.dimension, precision=precision
        )
        return cls(questions, index.question_vectors, index.chunk_vectors, index, store, embedder, top_n)

    def estimate(self) -> PrecomputeEstimate:
        """What a run will take, by timing a few encoder passes; nothing is written. Raises ModelError when the encoder
        fails."""
        per_question = self._k()
        stored = [question for question in self.questions if question.id in self.store]
        rng = random.Random(self.seed)
        sample = rng.sample(stored, min(len(stored), _SAMPLE_QUESTIONS))
        missing_share = float(np.mean([missing.mean() for _, _, missing in self._work(sample)])) if sample else 0.0
        fresh = len(self.questions) - len(stored)
        again = round(len(stored) * per_question * missing_share)
        pairs = fresh * per_question + again
        return PrecomputeEstimate(
            questions=fresh + (len(stored) if again else 0),
            pairs=pairs,
            seconds=self._seconds(pairs) if pairs else 0.0,
            n_bytes=pairs * self.store.bytes_per_pair(),
            pairs_stored=len(stored) * per_question - again,
        )

    def run(self, progress: Progress | None = None, *, budget_s: float | None = None) -> PrecomputeReport:
        """Embed and store what is missing, a transaction for every batch of questions.

        After `budget_s` seconds no further question is begun; the next run goes on from there. A question that the
        encoder refuses is counted and left out; it is embedded online later.
        """
        progress = progress or SilentProgress()
        started = perf_counter()
        removed = self.store.prune({question.id for question in self.questions})
        progress.start(STAGE, len(self.questions) * self._k())
        embedded = kept = done = unwritten = 0
        failures: list[tuple[str, str]] = []
        rows: list[InstructedRow] = []
        try:
            for question, chunk_ids, missing in self._work(self.questions):
                if budget_s is not None and perf_counter() - started >= budget_s:
                    break
                try:
                    row = self._row(question, chunk_ids, missing) if missing.any() else None
                except (ModelError, ValueError) as error:
                    logger.warning("Question %s is left out: %s", question.id, error)
                    failures.append((question.id, str(error)))
                    progress.advance(STAGE, len(chunk_ids))
                    continue
                done += 1
                embedded += int(missing.sum())
                kept += int((~missing).sum())
                if row is not None:
                    rows.append(row)
                    unwritten += int(missing.sum())
                    if unwritten >= _PAIRS_PER_TRANSACTION:
                        self.store.add(rows)
                        rows, unwritten = [], 0
                progress.advance(STAGE, len(chunk_ids))
        finally:  # an interrupted run keeps what it paid for
            if rows:
                self.store.add(rows)
        progress.finish(STAGE)
        return PrecomputeReport(
            questions=done,
            pairs_embedded=embedded,
            pairs_kept=kept,
            questions_removed=removed,
            seconds=perf_counter() - started,
            n_bytes=self.store.n_bytes,
            failures=tuple(failures),
            questions_left=len(self.questions) - done - len(failures),
        )

    def _k(self) -> int:
        available = self.chunk_vectors.count()
        if available == 0:
            raise IndexStateError("The index has no passages. Build it again: kraq index CORPUS --out DIR")
        return available if self.top_n is None else min(self.top_n, available)

    def _work(self, questions: Sequence[Question]) -> Iterator[tuple[Question, list[str], NDArray[np.bool_]]]:
        """Each question, the ids of its top-N passages, and which of them are not stored."""
        k = self._k()
        for start in range(0, len(questions), _QUESTIONS_PER_SEARCH):
            some = questions[start : start + _QUESTIONS_PER_SEARCH]
            vectors = self.question_vectors.vectors([question.id for question in some])
            for question, hits in zip(some, self.chunk_vectors.search(vectors, k), strict=True):
                chunk_ids = [chunk_id for chunk_id, _ in hits]
                yield question, chunk_ids, ~self.store.holds(question.id, chunk_ids)

    def _row(self, question: Question, chunk_ids: list[str], missing: NDArray[np.bool_]) -> InstructedRow:
        vectors, _ = self.store.lookup(question.id, chunk_ids)
        passages = [
            chunk.passage for chunk in self.chunks.chunks_by_id([chunk_ids[i] for i in np.flatnonzero(missing)])
        ]
        vectors[missing] = self.embedder.encode(question.text, passages)
        return InstructedRow(question.id, tuple(chunk_ids), vectors)

    def _seconds(self, pairs: int) -> float:
        """The time for so many pairs; an encoder that remembers what it read of a passage meets each passage anew
        once."""
        first, other = self.questions[0], self.questions[-1]
        [hits] = self.chunk_vectors.search(self.question_vectors.vectors([first.id]), min(self._k(), _SAMPLE_PAIRS))
        passages = [chunk.passage for chunk in self.chunks.chunks_by_id([chunk_id for chunk_id, _ in hits])]
        self.embedder.encode(first.text, passages[:1])  # the first pass of a process is slow
        fresh = passages[1:] or passages
        anew, again = (self._seconds_per_pair(question, fresh) for question in (first, other))
        return pairs * again + min(pairs, self.chunk_vectors.count()) * max(0.0, anew - again)

    def _seconds_per_pair(self, question: Question, passages: list[str]) -> float:
        started = perf_counter()
        self.embedder.encode(question.text, passages)
        return (perf_counter() - started) / len(passages)


@contextmanager
def precomputation(index: Index, settings: Settings, options: InstructedOptions) -> Iterator[Precomputation]:
    """What `kraq precompute` runs: `estimate()`, then `run(progress)`. The index must be open for writing."""
    work = Precomputation.of(
        index,
        load_instructed_embedder(settings.instructed),
        top_n=options.top_n,
        precision="int8" if options.int8 else "float16",
        source=None if options.questions == "all" else options.questions,
    )
    try:
        yield work
    finally:
        work.store.close()


def open_precomputed(index: Index, embedder: InstructedEmbedder) -> InstructedStore:
    """What `kraq precompute` stored. Raises IndexStateError for an index without questions or without pre-computed
    embeddings, EncoderMismatchError if another encoder made them; each names the command that mends it."""
    if index.count(Question) == 0:
        raise IndexStateError(
            f"{str(index.path)!r} has no questions that could stand in for yours. Finish the build "
            f"(kraq index CORPUS --out {index.path}), then run: kraq precompute {index.path}"
        )
    return InstructedStore.open(index.path / INSTRUCTED, embedder=embedder)
