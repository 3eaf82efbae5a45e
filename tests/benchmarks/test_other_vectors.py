"""Tests what the comparison of encoders counts of the evidence that `dense` finds by another one."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from kraq_dspy.eval.datasets import Example

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def other_vectors(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("other_vectors")


def test_evidence_that_dense_finds_anew_was_known_is_found_now_or_is_missing(other_vectors: ModuleType) -> None:
    fates = other_vectors.fates(
        dense={"a"}, dense_now={"a", "b", "c", "d"}, adaptive={"b", "e"}, adaptive_now={"a", "b", "c"}
    )

    assert fates == {
        "dense finds anew": {"b", "c", "d"},
        "adaptive had it": {"b"},
        "adaptive finds it now": {"c"},
        "still missing": {"d"},
        "adaptive finds besides": {"a"},
        "adaptive loses": {"e"},
        "at best": {"a", "c", "d"},
    }


def test_shares_are_means_over_questions_of_the_evidence_among_k_passages(other_vectors: ModuleType) -> None:
    examples = [Example("1", "Who?", (), ("x", "y")), Example("2", "Where?", (), ("z",))]
    first = {"dense": [["x"], ["no"]], "adaptive": [["x"], ["no"]]}
    other = {"dense": [["x", "y"], ["no", "z"]], "adaptive": [["x", "y"], ["no", "no"]]}

    among_two = other_vectors.shares_of_fates(first, other, examples, 2)
    among_one = other_vectors.shares_of_fates(first, other, examples, 1)

    assert among_two["dense finds anew"] == pytest.approx((1 / 2 + 1) / 2)
    assert among_two["adaptive finds it now"] == pytest.approx((1 / 2 + 0) / 2)
    assert among_two["still missing"] == pytest.approx((0 + 1) / 2)
    assert set(among_one.values()) == {0.0}


def test_recall_is_by_retriever_and_number_of_passages(other_vectors: ModuleType) -> None:
    examples = [Example("1", "Who?", (), ("x", "y"))]
    found = {"dense": [["x", "1", "2", "3", "4", "y"]], "adaptive": [["y", "x"]]}

    assert other_vectors.recalls(found, examples) == {
        ("dense", 5): [0.5],
        ("dense", 10): [1.0],
        ("adaptive", 5): [1.0],
        ("adaptive", 10): [1.0],
    }
