"""Tests that a data set is sampled until its evidence has so many tokens, by a seed."""

from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Dataset, Example, load_dataset
from kraq_dspy.eval.datasets import PassageTriples, sample_to_tokens
from kraq_dspy.records import Document


def words(text: str) -> int:
    return len(text.split())


def dataset(order: int = 1) -> Dataset:
    """Ten questions with a document of ten words each, and a document of five words that all of them share."""
    documents = (*(Document(f"d{i}", "", "w " * 10) for i in range(10)), Document("shared", "", "w " * 5))
    examples = tuple(Example(f"q{i}", "?", ("a",), (f"d{i}", "shared")) for i in range(10))[::order]
    return Dataset("ten", documents, examples, tuple(PassageTriples(f"d{i}", (), ()) for i in range(10)))


def test_questions_are_drawn_until_their_evidence_has_the_tokens() -> None:
    sample = sample_to_tokens(dataset(), 34, count_tokens=words)  # 10 + 5, then 10 each: 35 with three
    assert len(sample.examples) == 3
    assert {document.id for document in sample.documents} == {
        "shared",
        *(f"d{example.id[1:]}" for example in sample.examples),
    }
    assert {passage.document_id for passage in sample.triples} == {f"d{example.id[1:]}" for example in sample.examples}


def test_reaching_the_number_exactly_is_enough() -> None:
    assert len(sample_to_tokens(dataset(), 35, count_tokens=words).examples) == 3
    assert len(sample_to_tokens(dataset(), 36, count_tokens=words).examples) == 4


def test_the_seed_decides_whatever_the_order_of_the_questions() -> None:
    first = sample_to_tokens(dataset(), 34, seed=1, count_tokens=words)
    assert first.examples == sample_to_tokens(dataset(order=-1), 34, seed=1, count_tokens=words).examples
    assert any(
        first.examples != sample_to_tokens(dataset(), 34, seed=seed, count_tokens=words).examples
        for seed in range(2, 5)
    )


def test_a_set_with_less_evidence_is_kept_whole_and_questions_without_any_are_left_out() -> None:
    ten = dataset()
    more = Dataset("more", ten.documents, (*ten.examples, Example("q99", "?", ("a",))))
    assert len(sample_to_tokens(more, 10_000, count_tokens=words).examples) == 10
    with pytest.raises(EvaluationError, match="none of the 1 question has evidence"):
        sample_to_tokens(Dataset("none", (), (Example("q", "?", ("a",)),)), 10)
    with pytest.raises(ValueError, match="tokens is 0"):
        sample_to_tokens(ten, 0)


def test_a_real_set_is_sampled_by_cl100k_tokens(shared_data: Path) -> None:
    from kraq_dspy.asset.corpus.tokens import count_tokens

    sample = sample_to_tokens(load_dataset("musique", shared_data), 20_000)
    sizes = [count_tokens(document.text) for document in sample.documents]
    assert 20_000 <= sum(sizes) < 20_000 + 6_000  # the last question may bring 20 passages
    assert 5 <= len(sample.examples) <= 20
