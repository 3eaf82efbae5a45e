"""Tests that traditional RAG answers from the passages that it retrieves."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.programs import TraditionalRAG
from kraq_dspy.retrievers import DenseRetriever
from tests.programs.conftest import Library

QUESTION = "Which castle has music?"


@pytest.fixture
def lm() -> Iterator[DummyLM]:
    lm = DummyLM([{"answer": "the hall"}] * 200)
    with dspy.context(lm=lm):
        yield lm


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def test_the_prediction_has_the_answer_its_evidence_and_the_time_it_took(
    lm: DummyLM, library: Library, dense: DenseRetriever
) -> None:
    prediction = TraditionalRAG(dense, k=3)(question=QUESTION)
    assert prediction.answer == "the hall"
    assert prediction.hits == dense(QUESTION, 3)
    assert library.names(prediction.hits)[0] == "hall"
    assert set(prediction.timings) == {"retrieve", "answer", "wall"}
    assert prediction.timings["wall"] >= prediction.timings["retrieve"] + prediction.timings["answer"] - 1e-9


def test_an_explanation_comes_where_it_is_asked_for(dense: DenseRetriever) -> None:
    with dspy.context(lm=DummyLM([{"answer": "the hall", "explanation": "It has an organ."}])):
        explained = TraditionalRAG(dense, k=3, explain=True)(question=QUESTION)
    assert (explained.answer, explained.explanation) == ("the hall", "It has an organ.")


def test_the_model_sees_the_passages_with_their_titles_best_first(lm: DummyLM, dense: DenseRetriever) -> None:
    TraditionalRAG(dense, k=2)(question=QUESTION)
    prompt = lm.history[-1]["messages"][-1]["content"]
    best, second = dense(QUESTION, 2)
    assert prompt.index(best.chunk.text) < prompt.index(second.chunk.text)


def test_no_passages_are_no_error(lm: DummyLM, library: Library, dense: DenseRetriever) -> None:
    library.chunk_vectors.delete(library.chunk_vectors.ids())
    prediction = TraditionalRAG(dense)(question=QUESTION)
    assert prediction.hits == []
    assert prediction.answer == "the hall"


def test_sixteen_threads_may_share_a_program(library: Library, dense: DenseRetriever) -> None:
    program = TraditionalRAG(dense, k=3)
    program.set_lm(DummyLM([{"answer": "the hall"}] * 200))
    with ThreadPoolExecutor(16) as pool:
        predictions = list(pool.map(lambda _: program(question=QUESTION), range(64)))
    assert all(prediction.hits == dense(QUESTION, 3) for prediction in predictions)


def test_a_copy_has_predictors_of_its_own_and_the_same_stores(dense: DenseRetriever) -> None:
    program = TraditionalRAG(dense)
    copied = program.deepcopy()
    assert copied.retrieve is dense
    assert copied.answer is not program.answer


def test_k_below_one_is_refused(dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        TraditionalRAG(dense, k=0)


def test_an_empty_question_is_refused(lm: DummyLM, dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="expected some text"):
        TraditionalRAG(dense)(question=" ")
