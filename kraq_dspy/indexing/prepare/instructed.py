"""Prepares passages as seen from questions: E(d|q) of each stored question's top-N passages, or their sentences once.

For an encoder that reads question and passage together, kraq stores E(d|q) for the index's
questions, each with the passages nearest to it (KRAQ paper, appendix D.3). At query time it looks
up the question nearest to the user's. The variant "sentences" needs no stored question: from the
sentences' vectors E(d|Q) of any question is computed.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedRow, InstructedStore, any_instructed, forget_chunks
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.errors import IndexStateError, ModelError
from kraq_dspy.models.embedders.instructed import WeightedSentences
from kraq_dspy.ports import InstructedEmbedder, Progress, SilentProgress, Vectors
from kraq_dspy.records import Chunk, Question, content_id
from kraq_dspy.spec import option

logger = logging.getLogger(__name__)

STAGE = "precompute"
TOP_N = 20
"""Passages of each question: the papers' programs retrieve 10 to 20."""
SAMPLE = 8  # pairs that are read to tell how long all will take

_PASSAGES_PER_TRANSACTION = 256
_QUESTIONS_PER_SEARCH = 32


@dataclass(frozen=True)
class InstructedOptions:
    """Choice of passages and questions for encoders that read question and passage together."""

    top_n: int | None = option(TOP_N, "Passages for each question; none for all.", least=1)
    questions: Literal["kraq", "random", "all"] = option(
        "kraq", "Questions to do it for: kraq, random (the papers' baseline) or all."
    )
    only: frozenset[str] | None = None
    """Ids of the questions to do it for, of these; None for all."""


def precompute(
    index: Index, embedder: InstructedEmbedder, options: InstructedOptions, progress: Progress | None = None
) -> dict[str, Any]:
    """Do what `kraq precompute` runs; the index must be open for writing.

    It may be killed and run again: what is stored is kept. Raises IndexStateError for an index without passages, or
    without questions where those are needed, EncoderMismatchError when another encoder has begun.
    """
    if index.chunk_vectors.count() == 0:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    if isinstance(embedder, WeightedSentences):
        return store_sentences(index, embedder, progress)
    source = None if options.questions == "all" else options.questions
    return precompute_pairs(index, embedder, top_n=options.top_n, source=source, only=options.only, progress=progress)


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of `precompute`: the number of `readings` (a question with a passage) and of
    `questions`, some of them stored already, about how many `seconds` they take here, and their
    bytes on the disk."""

    questions: int
    readings: int
    seconds: float
    n_bytes: int


def price_of_pairs(index: Index, embedder: InstructedEmbedder, options: InstructedOptions) -> Price:
    """Return what is still to be read, by an encoder that reads question and passage together.

    The seconds are those of a few pairs, read to find out. Raises as `precompute` does.
    """
    questions = _questions_of(index, None if options.questions == "all" else options.questions, options.only)
    k = min(options.top_n or index.chunk_vectors.count(), index.chunk_vectors.count())
    with closing(_store(index, embedder.name, embedder.dimension)) as store:
        stored = store.owners()
        begun = [question for question in questions if question.id in stored]
        readings = k * (len(questions) - len(begun))
        readings += sum(int(missing.sum()) for _, _, missing in _work(index, store, begun, k))
    if not readings:
        return Price(len(questions), 0, 0.0, 0)

    sample = index.chunks_by_id(index.ids(Chunk)[:SAMPLE])
    embedder.encode(questions[0].text, [sample[0].passage])  # loads the weights
    started = perf_counter()
    embedder.encode(questions[0].text, [chunk.passage for chunk in sample])
    seconds = (perf_counter() - started) / len(sample) * readings
    return Price(len(questions), readings, seconds, 2 * embedder.dimension * readings)


def _questions_of(index: Index, source: str | None, only: Collection[str] | None = None) -> list[Question]:
    """List the questions, or `only` those with these ids; those about the most passages first. Raises IndexStateError
    if there are none."""
    asked = [question for question in index.questions(source=source) if only is None or question.id in only]
    questions = sorted(asked, key=lambda question: -len(question.chunk_ids))
    if not questions:
        index.require_documents()
        raise IndexStateError(
            f"{str(index.path)!r} has no questions to pre-compute for. Finish the build: "
            f"kraq index CORPUS --out {index.path}"
        )
    return questions


def store_sentences(index: Index, embedder: WeightedSentences, progress: Progress | None = None) -> dict[str, Any]:
    """The vectors of all passages' sentences; those of new passages are added, of passages that are gone removed.

    Counts `passages`, those `embedded` now and `removed`, and the store's `n_bytes`.
    """
    progress = progress or SilentProgress()
    ids = index.ids(Chunk)
    with closing(_store(index, embedder.sentences_name, embedder.dimension)) as store:
        removed = store.prune(ids)
        stored = store.owners()
        missing = [chunk_id for chunk_id in ids if chunk_id not in stored]
        progress.start(STAGE, len(ids))
        progress.advance(STAGE, len(ids) - len(missing))
        for some in batches(missing, _PASSAGES_PER_TRANSACTION):
            read = embedder.sentences([chunk.passage for chunk in index.chunks_by_id(some)])
            store.add(
                InstructedRow(chunk_id, tuple(content_id(chunk_id, str(place)) for place in range(len(rows))), rows)
                for chunk_id, rows in zip(some, read, strict=True)
            )
            progress.advance(STAGE, len(some))

        progress.finish(STAGE)
        return {"passages": len(ids), "embedded": len(missing), "removed": removed, "n_bytes": store.n_bytes}


def forget(index: Index, chunk_ids: Collection[str]) -> None:
    """Drop what the stored embeddings hold of these passages."""
    forget_chunks(index.path / INSTRUCTED, chunk_ids)


def carry(whole: Index, view: Index) -> None:
    """Give a view the stored embeddings of its own passages, seen from its own questions or sentence by sentence."""
    if not (whole.path / INSTRUCTED).is_file():
        return

    chunk_ids = frozenset(view.ids(Chunk))
    owners = {*chunk_ids, *view.ids(Question)}
    with any_instructed(whole.path / INSTRUCTED) as stored:
        made_by, dimension = stored.encoder_name, stored.dimension
        with closing(
            InstructedStore.create(view.path / INSTRUCTED, encoder_name=made_by, dimension=dimension)
        ) as store:
            for some in batches(sorted(owners & stored.owners()), _PASSAGES_PER_TRANSACTION):
                store.add(stored.part(owner_id, chunk_ids) for owner_id in some)


def precompute_pairs(
    index: Index,
    embedder: InstructedEmbedder,
    *,
    top_n: int | None = TOP_N,
    source: str | None = None,
    only: Collection[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """E(d|q) of the questions of a `source` ("kraq", "random", None for both), or `only` those with these ids, each
    with its `top_n` nearest passages (None: all); those about the most passages come first.

    Questions and passages that came since are added; a passage that left a question's top N goes when its row is
    written next, a question that left the index at once. A question that the encoder refuses is left out, and is among
    the `failures`, (id, reason). Counts `questions`, their pairs `embedded` now and `kept`, questions `removed`, and
    the store's `n_bytes`.
    """
    progress = progress or SilentProgress()
    questions = _questions_of(index, source, only)
    k = min(top_n or index.chunk_vectors.count(), index.chunk_vectors.count())
    embedded = n_stored_before = done = 0
    failures: list[tuple[str, str]] = []
    with closing(_store(index, embedder.name, embedder.dimension)) as store:
        removed = store.prune(index.ids(Question))  # those of another source stay
        progress.start(STAGE, len(questions) * k)
        for question, chunk_ids, missing in _work(index, store, questions, k):
            try:
                if missing.any():
                    store.add([_row(index, store, embedder, question, chunk_ids, missing)])
            except (ModelError, ValueError) as error:
                logger.warning("Question %s is left out: %s", question.id, error)
                failures.append((question.id, str(error)))
            else:
                done += 1
                embedded += int(missing.sum())
                n_stored_before += int((~missing).sum())
            progress.advance(STAGE, len(chunk_ids))

        progress.finish(STAGE)
        counts = {
            "questions": done,
            "embedded": embedded,
            "kept": n_stored_before,
            "removed": removed,
            "n_bytes": store.n_bytes,
        }
        return {**counts, "failures": tuple(failures)}


def _store(index: Index, encoder_name: str, dimension: int) -> InstructedStore:
    return InstructedStore.create(index.path / INSTRUCTED, encoder_name=encoder_name, dimension=dimension)


def _work(
    index: Index, store: InstructedStore, questions: Sequence[Question], k: int
) -> Iterator[tuple[Question, list[str], NDArray[np.bool_]]]:
    """Each question, the ids of its top-N passages, and which of them are not stored."""
    for some in batches(questions, _QUESTIONS_PER_SEARCH):
        vectors = index.question_vectors.vectors([question.id for question in some])
        for question, hits in zip(some, index.chunk_vectors.search(vectors, k), strict=True):
            chunk_ids = [chunk_id for chunk_id, _ in hits]
            yield question, chunk_ids, ~store.holds(question.id, chunk_ids)


def _row(
    index: Index,
    store: InstructedStore,
    embedder: InstructedEmbedder,
    question: Question,
    chunk_ids: list[str],
    missing: NDArray[np.bool_],
) -> InstructedRow:
    vectors, _ = store.lookup(question.id, chunk_ids)
    chunks = index.chunks_by_id([chunk_ids[place] for place in np.flatnonzero(missing)])
    vectors[missing] = embedder.encode(question.text, [chunk.passage for chunk in chunks])
    return InstructedRow(question.id, tuple(chunk_ids), vectors)


class StoredSentences(SharedByCopies):
    """E(d|Q) of passages for any question, exactly, from what `store_sentences` kept: a `ports.SentenceVectors`."""

    def __init__(self, store: InstructedStore, embedder: WeightedSentences) -> None:
        self.store = store
        self.embedder = embedder

    def seen_from(self, question: str, chunks: Sequence[Chunk]) -> tuple[Vectors, NDArray[np.bool_]]:
        rows = [self.store.whole(chunk.id) for chunk in chunks]
        missing = [chunk.passage for chunk, row in zip(chunks, rows, strict=True) if row is None]
        read = iter(self.embedder.sentences(missing))
        sentences = [next(read) if row is None else row for row in rows]
        return self.embedder.weighed(question, sentences), np.array([row is not None for row in rows], np.bool_)


def open_precomputed(
    index: Index, embedder: InstructedEmbedder, source: str = "kraq"
) -> InstructedStore | StoredSentences:
    """Open what `kraq precompute` stored for the questions of a source ("kraq" or "random").

    Raises IndexStateError for an index without it, or without the questions that it is for,
    EncoderMismatchError if another encoder made it; each names the command that mends it.
    """
    path = index.path / INSTRUCTED
    if isinstance(embedder, WeightedSentences):
        return StoredSentences(InstructedStore.open(path, encoder_name=embedder.sentences_name), embedder)
    if index.count(Question) == 0:
        index.require_documents()
        raise IndexStateError(
            f"{str(index.path)!r} has no questions that could be looked up for yours. Finish the build "
            f"(kraq index CORPUS --out {index.path}), then run: kraq precompute {index.path}. {_VARIANT}"
        )

    if source == "random" and not index.questions(source=source):
        raise IndexStateError(
            f"{str(index.path)!r} holds no random questions, the papers' baseline. Make them: kraq index CORPUS --out "
            f"{index.path} --random-questions, then: kraq precompute {index.path} --source random"
        )
    try:
        store = InstructedStore.open(path, encoder_name=embedder.name)
    except IndexStateError as error:
        raise type(error)(f"{error} {_VARIANT}") from error
    if store.owners().isdisjoint(question.id for question in index.questions(source=source)):
        store.close()
        more = "" if source == "kraq" else f" --source {source}"
        raise IndexStateError(
            f"{str(path)!r} holds no embeddings for the {source} questions of the index. Run: kraq precompute "
            f"{index.path}{more}"
        )
    return store


_VARIANT = (
    'The variant "sentences" needs no stored question: [instructed] kind = "sentences" in kraq.toml, then '
    "kraq precompute again."
)
