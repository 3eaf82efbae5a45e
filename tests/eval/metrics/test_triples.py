"""Tests the scores of triples against values worked out by hand."""

from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.optimize.step_metrics import best_pairs, link_f1, triple_f1

GOLD = [("Ada Lovelace", "worked with", "Charles Babbage"), ("Ada Lovelace", "daughter of", "Lord Byron")]


def test_the_same_triples_score_1() -> None:
    assert triple_f1(GOLD, list(reversed(GOLD))) == 1.0
    assert triple_f1([("The Times", "is", "a paper")], [("times", "is", "Paper.")]) == 1.0  # after normalisation


def test_missing_and_extra_triples_cost_recall_and_precision() -> None:
    assert triple_f1(GOLD, GOLD[:1]) == pytest.approx(2 / 3)
    assert triple_f1(GOLD, [*GOLD, ("Ada", "knew", "Mary"), ("Ada", "met", "Mary")]) == pytest.approx(4 / 6)
    assert triple_f1(GOLD, []) == 0.0


def test_predicates_count_by_their_words() -> None:
    triples = [("Ada Lovelace", "worked for", "Charles Babbage")]
    assert triple_f1(GOLD[:1], triples) == 0.5
    assert link_f1(GOLD[:1], triples) == 1.0


def test_a_triple_has_one_partner() -> None:
    assert link_f1(GOLD[:1], [GOLD[0], GOLD[0]]) == pytest.approx(2 / 3)


def test_direction_counts() -> None:
    assert link_f1([("a man", "bit", "a dog")], [("a dog", "bit", "a man")]) == 0.0


@pytest.mark.parametrize("gold", [[], [("Ada", "", "Byron")], [("Ada", "knew")]])
def test_gold_that_says_nothing_is_refused(gold: list[tuple[str, str, str]]) -> None:
    with pytest.raises(EvaluationError):
        triple_f1(gold, [])


def test_pairs_are_those_that_give_the_most_together() -> None:
    assert best_pairs([[1.0, 0.5], [1.0, 0.0]]) == 1.5  # the first row leaves its best partner to the second
    assert best_pairs([[], []]) == best_pairs([]) == 0.0


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.4, 0.5, 0.9, 1.0]), min_size=4, max_size=4), max_size=4))
def test_no_other_pairs_give_more(credit: list[list[float]]) -> None:
    tried = [sum(row[column] for row, column in zip(credit, order, strict=False)) for order in permutations(range(4))]
    assert best_pairs(credit) == pytest.approx(max(tried))
