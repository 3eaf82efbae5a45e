"""Puts a `dspy.Embedder` in place of an encoder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest

from kraq_dspy import Corpus, build_index
from kraq_dspy.errors import EncoderMismatchError, ModelError
from kraq_dspy.extend import as_embedder
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace


def letters(texts: list[str]) -> list[list[float]]:
    """Counts of a, b and c, and one."""
    return [[float(text.lower().count(letter)) for letter in "abc"] + [1.0] for text in texts]


def other(texts: list[str]) -> list[list[float]]:
    return letters(texts)


def embedder(function: Callable[[list[str]], object] = letters) -> dspy.Embedder:
    return dspy.Embedder(function, caching=False)


def test_rows_are_normalised_and_the_dimension_is_learned() -> None:
    adapted = as_embedder(embedder())
    assert adapted.dimension == 4
    rows = adapted.encode_queries(["aa", ""])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(rows[0], np.array([2, 0, 0, 1]) / np.sqrt(5), rtol=1e-6)
    assert adapted.encode_passages([]).shape == (0, 4)
    assert adapted.name.endswith("letters by dspy.Embedder")


def test_texts_are_retrieved_with_it() -> None:
    corpus = Corpus.from_texts(["bbbb", "aaaa", "cccc"], embedder=embedder())
    assert [hit.chunk.text for hit in corpus.retriever("a", k=1)] == ["aaaa"]


def test_an_index_is_built_and_opened_with_it_and_not_with_another(tmp_path: Path) -> None:
    documents = [Document("a", "Ada", "Ada Lovelace met Charles Babbage in London.")]
    report = build_index(documents, tmp_path / "x.kraq", embedder=embedder())
    assert report.failures == ()
    with Workspace.open(tmp_path / "x.kraq", embedder=embedder()) as space:
        assert space.retriever("dense")("Ada", k=1)[0].chunk.document_id == "a"
    with pytest.raises(EncoderMismatchError):
        Workspace.open(tmp_path / "x.kraq", embedder=embedder(other))


def test_what_is_no_encoder_is_named_with_what_it_lacks() -> None:
    nonsense: Any = letters
    with pytest.raises(TypeError, match=r"embedder is .*function.*without name.*expected a kraq_dspy.extend.Embedder"):
        as_embedder(nonsense)


def test_a_function_that_makes_no_embeddings_is_refused() -> None:
    with pytest.raises(ModelError, match=r"shape \(2,\) of 2 texts"):
        as_embedder(embedder(lambda texts: [1.0] * len(texts))).encode_queries(["a", "b"])
    with pytest.raises(ModelError, match="zero or not finite"):
        as_embedder(embedder(lambda texts: [[0.0, 0.0]] * len(texts))).encode_queries(["a"])


def test_a_question_is_encoded_once_and_what_a_caller_does_to_its_vector_stays_with_the_caller() -> None:
    asked: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return letters(texts)

    adapted = as_embedder(embedder(counted))
    first = adapted.encode_queries(["aa"])
    before = first.copy()
    first *= 0
    np.testing.assert_array_equal(adapted.encode_queries(["aa"]), before)
    assert asked == ["aa"]

    adapted.encode_queries(["aa", "b"])  # several are no question of a person
    adapted.encode_passages(["aa"])
    assert asked == ["aa", "aa", "b", "aa"]


def test_the_questions_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return letters(texts)

    monkeypatch.setattr("kraq_dspy.models.embedders.text_encoder.REMEMBERED", 2)
    adapted = as_embedder(embedder(counted))
    for question in ["a", "b", "a", "c", "a", "b"]:
        adapted.encode_queries([question])
    assert asked == ["a", "b", "c", "b"]
