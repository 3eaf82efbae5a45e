"""Tests that combined RAG answers from the evidence of all its questions, and says which found what."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import IndexStateError
from kraq_dspy.programs import CombinedRetrieveRAG, TraditionalRAG
from kraq_dspy.retrievers import DenseRetriever, NearestQuestions
from tests.programs.conftest import Library

QUESTION = "castle castle music"


@pytest.fixture
def lm() -> Iterator[DummyLM]:
    lm = DummyLM([{"answer": "the hall"}] * 200)
    with dspy.context(lm=lm):
        yield lm


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


@pytest.fixture
def nearest(library: Library) -> NearestQuestions:
    return NearestQuestions(library.records, library.question_vectors, library.embedder)


def test_the_prediction_names_the_evidence_what_found_it_and_the_auxiliary_questions(
    lm: DummyLM, dense: DenseRetriever, nearest: NearestQuestions
) -> None:
    prediction = CombinedRetrieveRAG(dense, nearest, k=4)(question=QUESTION)
    assert prediction.answer == "the hall"
    assert [(hit.chunk.title, hit.query, hit.why) for hit in prediction.hits] == [
        ("hall", QUESTION, "dense"),
        ("keep", QUESTION, "dense"),
        ("gate", "Which castle is there?", "auxiliary"),
        ("song", "What music is there?", "auxiliary"),
    ]
    assert [(hit.question.text, round(hit.similarity, 3)) for hit in prediction.auxiliary_questions] == [
        ("Which castle is there?", 0.894),
        ("What music is there?", 0.447),
    ]
    assert set(prediction.timings) == {"retrieve", "answer", "wall"}


def test_the_model_sees_the_evidence_of_all_questions(
    lm: DummyLM, dense: DenseRetriever, nearest: NearestQuestions
) -> None:
    CombinedRetrieveRAG(dense, nearest, k=4)(question=QUESTION)
    prompt = lm.history[-1]["messages"][-1]["content"]
    places = [prompt.index(text) for text in ("Music in the castle.", "The castle on", "A bridge leads", "for a choir")]
    assert places == sorted(places)


def test_alpha_one_is_traditional_rag(
    lm: DummyLM, library: Library, dense: DenseRetriever, nearest: NearestQuestions
) -> None:
    library.question_vectors.delete(library.question_vectors.ids())
    combined = CombinedRetrieveRAG(dense, nearest, k=5, alpha=1.0)(question=QUESTION)
    combined_prompt = lm.history[-1]["messages"]
    traditional = TraditionalRAG(dense, k=5)(question=QUESTION)
    assert (combined.answer, combined.hits) == (traditional.answer, traditional.hits)
    assert lm.history[-1]["messages"] == combined_prompt
    assert combined.auxiliary_questions == []


def test_an_index_without_questions_says_what_to_do(
    lm: DummyLM, library: Library, dense: DenseRetriever, nearest: NearestQuestions
) -> None:
    library.question_vectors.delete(library.question_vectors.ids())
    with pytest.raises(IndexStateError, match="kraq index"):
        CombinedRetrieveRAG(dense, nearest)(question=QUESTION)


def test_strict_retrieves_the_papers_count(lm: DummyLM, dense: DenseRetriever, nearest: NearestQuestions) -> None:
    def count(strict: bool) -> int:
        return len(CombinedRetrieveRAG(dense, nearest, k=8, n=3, strict=strict)(question=QUESTION).hits)

    assert (count(strict=False), count(strict=True)) == (8, 4 + 3 * 1)


def test_sixteen_threads_may_share_a_program(dense: DenseRetriever, nearest: NearestQuestions) -> None:
    program = CombinedRetrieveRAG(dense, nearest, k=4)
    program.set_lm(DummyLM([{"answer": "the hall"}] * 200))
    expected = program(question=QUESTION).hits
    with ThreadPoolExecutor(16) as pool:
        assert all(
            prediction.hits == expected for prediction in pool.map(lambda _: program(question=QUESTION), range(64))
        )


def test_a_copy_shares_the_stores_and_saved_state_holds_the_predictor_alone(
    tmp_path: Path, dense: DenseRetriever, nearest: NearestQuestions
) -> None:
    program = CombinedRetrieveRAG(dense, nearest)
    assert program.deepcopy().retrieve is program.retrieve
    program.save(tmp_path / "program.json")
    assert set(json.loads((tmp_path / "program.json").read_text("utf-8"))["predictors"]) == {"answer"}
    CombinedRetrieveRAG(dense, nearest).load(tmp_path / "program.json")


@pytest.mark.parametrize(
    ("settings", "message"), [({"k": 0}, "k is 0"), ({"n": 0}, "n is 0"), ({"alpha": -0.1}, r"alpha is -0\.1")]
)
def test_bad_settings_are_refused(
    dense: DenseRetriever, nearest: NearestQuestions, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        CombinedRetrieveRAG(dense, nearest, **settings)
