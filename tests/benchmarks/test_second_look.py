"""Tests how pairs for the second look are made and counted; the model's replies come from a list."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from dspy.utils import DummyLM

from tests.conftest import KeywordEmbedder

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def second_look(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("second_look")


def test_a_pair_is_right_where_the_nearest_entry_is_the_questions_own(
    second_look: ModuleType, keyword_embedder: type[KeywordEmbedder]
) -> None:
    entries = [("Where is my card?", "card"), ("What does a loan cost?", "loan")]
    queries = [("my card is gone", "card"), ("a loan for a card? a card!", "loan"), ("a loan at last", "")]
    pairs = second_look.nearest_pairs(second_look.Case("bank", entries, queries), keyword_embedder("card", "loan"))
    assert [pair.entry.split()[-1] for pair in pairs] == ["card?", "card?", "cost?"]
    assert [(pair.is_there, pair.is_right) for pair in pairs] == [(True, True), (True, False), (False, False)]
    assert second_look.chosen(pairs, 0, 1) == [pairs[0], pairs[1]]
    assert second_look.chosen(pairs, 1, 5) == [pairs[2]]


def test_what_the_model_calls_the_same_passes_in_every_wording(second_look: ModuleType) -> None:
    pairs = [second_look.Pair(question, "Who sells it?", 0.9, True, True) for question in ("Who sold it?", "Why?")]
    written = {"first_asks_for": "a seller", "second_asks_for": "a seller"}
    for wording, (_, names, before) in second_look.WORDINGS.items():
        extra = written if before else {}
        lm = DummyLM([{**extra, "same": "True"}, {**extra, "same": "False"}])
        assert second_look.let_pass(wording, pairs, lm) == [True, False]
        assert f"[[ ## {names[0]} ## ]]\nWho sold it?" in lm.history[0]["messages"][-1]["content"]
