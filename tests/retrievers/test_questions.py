"""Tests that the stored questions nearest to another are found, each once."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Question, QuestionHit, content_id
from kraq_dspy.retrievers import NearestQuestions
from tests.programs.conftest import Library


def nearest(library: Library, **settings: Any) -> NearestQuestions:
    return NearestQuestions(library.records, library.question_vectors, library.embedder, **settings)


def texts(hits: Iterable[QuestionHit]) -> list[str]:
    return [hit.question.text for hit in hits]


def test_the_most_similar_question_comes_first_with_its_cosine(library: Library) -> None:
    hits = nearest(library)("castle castle music", 2)
    assert texts(hits) == ["Which castle is there?", "What music is there?"]
    assert [hit.similarity for hit in hits] == pytest.approx([2 / 5**0.5, 1 / 5**0.5], abs=1e-6)


def test_duplicates_are_passed_over_however_many_there_are(library: Library) -> None:
    original = content_id("question", "about castles")
    vector = library.embedder.encode_queries(["castle"])
    for number in range(20):
        question = Question(
            content_id("twin", str(number)), "A castle?", "kraq", None, 0, (), (), duplicate_of=original
        )
        library.records.questions[question.id] = question
        library.question_vectors.upsert([question.id], vector)
    hits = nearest(library)("castle", 3)
    assert texts(hits)[0] == "Which castle is there?"
    assert set(texts(hits)) == {"Which bridge is there?", "Which castle is there?", "What music is there?"}


def test_asking_for_more_questions_than_there_are_gives_all(library: Library) -> None:
    assert len(nearest(library)("river", 50)) == 3


def test_stored_vectors_come_in_the_order_asked_for(library: Library) -> None:
    ids = [content_id("question", name) for name in ("about music", "about bridges")]
    expected = library.embedder.encode_queries(["music", "bridge"])
    assert np.allclose(nearest(library).vectors(ids), expected)


def test_an_index_without_questions_says_which_command_makes_them(library: Library) -> None:
    library.question_vectors.delete(library.question_vectors.ids())
    with pytest.raises(IndexStateError, match="`kraq index`"):
        nearest(library)("castle", 2)


def test_filters_that_no_question_meets_are_no_error(library: Library) -> None:
    assert nearest(library, filters={"level": 7})("castle", 2) == []
