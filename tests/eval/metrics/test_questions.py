"""Tests that each reference question is paired with the nearest one that was generated."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.questions import nearest_rows, pair_questions


def test_each_reference_is_paired_with_its_nearest_generated_question(keyword_embedder: Callable[..., Any]) -> None:
    embedder = keyword_embedder("rome", "oslo")
    generated = ["About Oslo?", "About Rome?", "About Rome and Oslo?", "About Rome again?"]
    pairs = pair_questions(["Rome?", "Oslo or Rome?", "Rome?"], generated, embedder)
    assert [pair.cosine for pair in pairs] == pytest.approx([1.0, 1.0, 1.0])
    nearest = ["About Rome?", "About Rome and Oslo?", "About Rome?"]  # of equals the earlier one
    assert [pair.generated for pair in pairs] == nearest


def test_blocks_give_the_same_as_one_product() -> None:
    rng = np.random.default_rng(0)
    vectors, among = (rng.normal(size=(n, 8)).astype(np.float32) for n in (2500, 30))
    nearest, cosines = nearest_rows(vectors, among)
    assert nearest.tolist() == (vectors @ among.T).argmax(axis=1).tolist()
    assert cosines == pytest.approx((vectors @ among.T).max(axis=1), rel=1e-5)


def test_missing_blank_or_nan_input_is_refused_by_row(keyword_embedder: Callable[..., Any]) -> None:
    embedder = keyword_embedder("rome")
    with pytest.raises(EvaluationError, match="no generated questions"):
        pair_questions(["Rome?"], [], embedder)
    with pytest.raises(EvaluationError, match="Row 1: the reference question is ' '"):
        pair_questions(["Rome?", " "], ["Rome?"], embedder)
