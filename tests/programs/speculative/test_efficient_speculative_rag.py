"""Tests Efficient Speculative RAG with an encoder that sees one thing: whether a text is about apples or fuel."""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import dspy
import numpy as np
import pytest

from kraq_dspy.asset.store.instructed import InstructedRow, InstructedStore
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import EfficientSpeculativeRAG, SpeculativeRAG, VoteScore
from kraq_dspy.records import Chunk, Hit, Question, QuestionHit, content_id
from tests.programs.speculative.conftest import ScriptedLM

TEXTS = ["apple pie", "rocket pie", "apple fuel", "rocket fuel"]
CHUNKS = [Chunk(content_id("chunk", text), "doc", i, 0, len(text), text, 2) for i, text in enumerate(TEXTS)]
STORED = Question(content_id("stored"), "apple or rocket?", "kraq", "c", 0, (), ())


class ByWord:
    """One axis for passages with the word that matters to the question, one for the others."""

    name, dimension = "by-word", 2

    def __init__(self) -> None:
        self.encoded: list[tuple[str, tuple[str, ...]]] = []

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        self.encoded.append((question, tuple(passages)))
        axis = "fuel" if "fuel" in question else "apple"
        return np.array(
            [[1.0, 0.0] if axis in passage else [0.0, 1.0] for passage in passages], dtype=np.float32
        ).reshape(-1, 2)


class OneQuestion:
    """A finder that knows STORED, at a fixed similarity."""

    def __init__(self, similarity: float) -> None:
        self.similarity = similarity

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        return [QuestionHit(STORED, self.similarity)][:n]

    def encode(self, text: str) -> Vectors:
        return np.ones(1, dtype=np.float32)

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return np.ones((len(question_ids), 1), dtype=np.float32)


class NoQuestion(OneQuestion):
    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        return []


def retrieve(question: str, k: int, **_: Any) -> list[Hit]:
    return [Hit(chunk, 1.0, question) for chunk in CHUNKS][:k]


def stored_for(tmp_path: Path, chunks: Sequence[Chunk]) -> InstructedStore:
    store = InstructedStore.create(tmp_path / "instructed.db", encoder_name="by-word", dimension=2)
    vectors = ByWord().encode(STORED.text, [chunk.passage for chunk in chunks])
    store.add([InstructedRow(STORED.id, tuple(chunk.id for chunk in chunks), vectors)])
    return store


@pytest.fixture
def drafter(scripted_lm: ScriptedLM) -> dspy.LM:
    lm, _ = scripted_lm(lambda prompt: [("[[ ## rationale ## ]]\nr\n[[ ## response ## ]]\na", math.log(1 / 2))])
    return lm  # type: ignore[no-any-return]


def ask(program: SpeculativeRAG, lm: dspy.LM, how: str = "threads") -> dspy.Prediction:
    with dspy.context(lm=lm):
        if how == "threads":
            return program(question="which fuel?")
        return asyncio.run(program.acall(question="which fuel?"))


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_clusters_come_from_the_stored_question_without_a_pass_of_the_encoder(
    how: str, tmp_path: Path, drafter: dspy.LM
) -> None:
    encoder = ByWord()
    program = EfficientSpeculativeRAG(
        retrieve, OneQuestion(0.9), stored_for(tmp_path, CHUNKS), encoder, n=4, k=2, scorer=VoteScore()
    )
    prediction = ask(program, drafter, how)
    assert prediction.clusters == (0, 1, 0, 1)  # as the stored question sees them, not (0, 0, 1, 1)
    assert encoder.encoded == []
    assert (prediction.proxy_used, prediction.proxy_similarity) == (True, 0.9)
    assert prediction.proxy.question == STORED
    assert (prediction.n_looked_up, prediction.n_embedded) == (4, 0)
    assert prediction.timings.embed == 0
    assert min(prediction.timings.proxy, prediction.timings.lookup) > 0


def test_missing_passages_are_embedded_online_as_seen_from_the_stored_question_and_counted(
    tmp_path: Path, drafter: dspy.LM
) -> None:
    encoder = ByWord()
    store = stored_for(tmp_path, [CHUNKS[0], CHUNKS[3]])
    program = EfficientSpeculativeRAG(retrieve, OneQuestion(0.9), store, encoder, n=4, k=2, scorer=VoteScore())
    prediction = ask(program, drafter)
    assert prediction.clusters == (0, 1, 0, 1)
    assert encoder.encoded == [(STORED.text, ("rocket pie", "apple fuel"))]
    assert (prediction.n_looked_up, prediction.n_embedded) == (2, 2)
    assert min(prediction.timings.lookup, prediction.timings.embed) > 0


@pytest.mark.parametrize(
    ("finder", "stored", "similarity"),
    [(OneQuestion(0.4), CHUNKS, 0.4), (OneQuestion(0.9), [], 0.9), (NoQuestion(0.0), CHUNKS, None)],
    ids=["too far", "nothing stored for it", "no question"],
)
def test_without_a_fitting_proxy_the_users_own_question_is_embedded_online(
    finder: OneQuestion, stored: list[Chunk], similarity: float | None, tmp_path: Path, drafter: dspy.LM
) -> None:
    encoder = ByWord()
    store = stored_for(tmp_path, stored)
    program = EfficientSpeculativeRAG(
        retrieve, finder, store, encoder, min_similarity=0.6, n=4, k=2, scorer=VoteScore()
    )
    prediction = ask(program, drafter)
    assert prediction.clusters == (0, 0, 1, 1)  # as the user's question sees them
    assert encoder.encoded == [("which fuel?", tuple(TEXTS))]
    assert (prediction.proxy_used, prediction.proxy_similarity) == (False, similarity)
    assert (prediction.n_looked_up, prediction.n_embedded) == (0, 4)
    plain = ask(SpeculativeRAG(retrieve, encoder, n=4, k=2, scorer=VoteScore()), drafter)
    assert plain.subsets == prediction.subsets


def test_a_proxy_as_near_as_the_threshold_is_used(tmp_path: Path, drafter: dspy.LM) -> None:
    program = EfficientSpeculativeRAG(
        retrieve, OneQuestion(0.6), stored_for(tmp_path, CHUNKS), ByWord(), min_similarity=0.6, n=4, scorer=VoteScore()
    )
    assert ask(program, drafter).proxy_used


def test_no_hits_make_one_draft_without_evidence(tmp_path: Path, drafter: dspy.LM) -> None:
    def nothing(question: str, k: int, **_: Any) -> list[Hit]:
        return []

    program = EfficientSpeculativeRAG(nothing, OneQuestion(0.9), stored_for(tmp_path, []), ByWord(), scorer=VoteScore())
    prediction = ask(program, drafter)
    assert (prediction.subsets, prediction.n_looked_up, prediction.n_embedded) == (((),), 0, 0)


def test_the_question_is_encoded_once_for_retriever_and_finder(tmp_path: Path, drafter: dspy.LM) -> None:
    vectors_sent: list[Any] = []

    def retrieve_by(question: str, k: int, *, vector: Vectors | None = None, **_: Any) -> list[Hit]:
        vectors_sent.append(("retriever", None if vector is None else vector.tolist()))
        return retrieve(question, k)

    class Finder(OneQuestion):
        def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
            vectors_sent.append(("finder", None if vector is None else vector.tolist()))
            return super().__call__(text, n)

        def encode(self, text: str) -> Vectors:
            vectors_sent.append(("encoded", text))
            return np.array([0.6, 0.8])

    program = EfficientSpeculativeRAG(
        retrieve_by, Finder(0.9), stored_for(tmp_path, CHUNKS), ByWord(), n=4, scorer=VoteScore()
    )
    ask(program, drafter)
    assert vectors_sent == [("encoded", "which fuel?"), ("retriever", [0.6, 0.8]), ("finder", [0.6, 0.8])]


def test_copies_of_the_program_share_the_store(tmp_path: Path, drafter: dspy.LM) -> None:
    store = stored_for(tmp_path, CHUNKS)
    program = EfficientSpeculativeRAG(retrieve, OneQuestion(0.9), store, ByWord(), n=4, scorer=VoteScore())
    copy = program.deepcopy()
    assert copy.precomputed is store
    assert ask(copy, drafter).proxy_used


class Circle:
    """Three questions on a circle, at 0, 60 and 120 degrees; the user's stands at 50."""

    angles: ClassVar = {"q0": 0.0, "q60": 60.0, "q120": 120.0}

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        assert vector is not None
        cosines = {id: float(self.vectors([id])[0] @ vector) for id in self.angles}
        nearest = sorted(cosines, key=cosines.__getitem__, reverse=True)[:n]
        return [QuestionHit(Question(content_id(id), id, "kraq", None, 0, (), ()), cosines[id]) for id in nearest]

    def encode(self, text: str) -> Vectors:
        return _direction(50)

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return np.stack([_direction(self.angles[id]) for id in question_ids])


def _direction(degrees: float) -> Vectors:
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=np.float32)


def test_algorithm_2_line_by_line(tmp_path: Path, drafter: dspy.LM) -> None:
    """q* = argmax cos(emb Q, emb q) = q60, at cos 10 degrees; E_pre(d, q*) is looked up for all of D; these vectors,
    and not those of another question, make the clusters."""
    of_each = {"q0": [0, 0, 90, 90], "q60": [0, 90, 90, 0], "q120": [0, 90, 0, 90]}
    store = InstructedStore.create(tmp_path / "instructed.db", encoder_name="by-word", dimension=2)
    ids = tuple(chunk.id for chunk in CHUNKS)
    store.add(
        InstructedRow(content_id(id), ids, np.stack([_direction(angle) for angle in angles]))
        for id, angles in of_each.items()
    )
    encoder = ByWord()
    program = EfficientSpeculativeRAG(retrieve, Circle(), store, encoder, n=4, k=2, m=4, scorer=VoteScore())
    prediction = ask(program, drafter)
    assert prediction.proxy.question.text == "q60"
    assert prediction.proxy_similarity == pytest.approx(math.cos(math.radians(10)))
    assert prediction.clusters == (0, 1, 1, 0)
    assert sorted(map(sorted, prediction.subsets)) == [[0, 1], [0, 2], [1, 3], [2, 3]]  # one of each cluster
    assert (prediction.n_looked_up, encoder.encoded, prediction.seen_by) == (4, [], "by-word")
