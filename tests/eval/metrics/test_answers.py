"""Tests the scores of answers on pairs that a reader can score."""

import math
from collections.abc import Callable, Sequence

import pytest
from dspy.evaluate.metrics import f1_score
from hypothesis import given, strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import (
    answer_similarity,
    exact_match,
    substring_match,
    substring_match_items,
    token_f1,
)

Matcher = Callable[[Sequence[str], str], float]
MATCHERS: list[Matcher] = [substring_match, exact_match, token_f1]
WORDS = st.lists(st.sampled_from(["paris", "rome", "the", "oslo", "A", "2nd", "北", "."]), min_size=1, max_size=6).map(
    " ".join
)


def test_exact_match_finds_the_gold_answer_inside_a_sentence() -> None:
    assert substring_match(["Stanley Hall"], "It was G. Stanley Hall, in 1892.") == 1.0
    assert substring_match(["Stanley Hall"], "It was G. S. Hall.") == 0.0


def test_any_of_the_gold_answers_is_right() -> None:
    assert substring_match(["G. Stanley Hall", "Stanley Hall"], "Stanley Hall") == 1.0


def test_a_short_gold_answer_is_not_found_inside_another_word() -> None:
    assert substring_match(["no"], "I do not know") == 0.0


def test_a_chinese_answer_is_found_in_a_sentence_without_spaces() -> None:
    assert substring_match(["光荣和ω-force"], "由光荣和ω-force合作开发。") == 1.0
    assert substring_match(["光荣和ω-force"], "由光荣开发。") == 0.0


def test_strict_match_wants_the_whole_answer() -> None:
    assert exact_match(["Eiffel Tower"], "the Eiffel Tower!") == 1.0
    assert exact_match(["Eiffel Tower"], "Eiffel Tower in Paris") == 0.0


def test_token_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    # 2 of 4 words are right and both gold words are found: P = 1/2, R = 1.
    assert token_f1(["Eiffel Tower"], "Eiffel Tower near Paris") == pytest.approx(2 / 3)
    # A repeated word counts as often as it is in both: P = 1/2, R = 1/3.
    assert token_f1(["oslo rome paris"], "oslo oslo") == pytest.approx(0.4)


def test_token_f1_takes_the_best_reference() -> None:
    assert token_f1(["rome", "oslo paris"], "oslo") == pytest.approx(2 / 3)


def test_chinese_token_f1_counts_characters() -> None:
    assert token_f1(["北京大学"], "北京") == pytest.approx(2 * 2 / 6)


@given(st.lists(st.sampled_from(["paris", "rome", "an", "oslo", "2nd"]), min_size=1, max_size=5))
def test_on_plain_english_token_f1_agrees_with_dspy(words: list[str]) -> None:
    gold = "oslo rome rome"
    if set(words) != {"an"}:
        assert token_f1([gold], " ".join(words)) == pytest.approx(f1_score(" ".join(words), gold))


@pytest.mark.parametrize("metric", MATCHERS)
@given(gold=st.lists(WORDS, min_size=1, max_size=3), predicted=WORDS)
def test_scores_are_in_the_unit_interval_and_equality_scores_one(
    metric: Matcher, gold: list[str], predicted: str
) -> None:
    assert 0.0 <= metric(gold, predicted) <= 1.0
    assert metric([*gold, predicted], predicted) == 1.0


@given(WORDS, WORDS)
def test_strict_match_and_f1_are_symmetric(first: str, second: str) -> None:
    assert exact_match([first], second) == exact_match([second], first)
    assert token_f1([first], second) == token_f1([second], first)


@given(WORDS, WORDS)
def test_a_strict_match_is_also_a_match_inside(gold: str, predicted: str) -> None:
    assert exact_match([gold], predicted) <= substring_match([gold], predicted)


@pytest.mark.parametrize("metric", MATCHERS)
def test_an_empty_answer_is_wrong_and_undefined_input_is_refused(metric: Matcher) -> None:
    assert metric(["Oslo"], "") == 0.0
    with pytest.raises(EvaluationError, match="no gold answers"):
        metric([], "Oslo")
    with pytest.raises(EvaluationError, match="Gold answer 1 is ' '"):
        metric(["Oslo", " "], "Oslo")
    with pytest.raises(EvaluationError, match=r"Write \['Oslo'\]"):
        metric("Oslo", "Oslo")
    with pytest.raises(EvaluationError, match="predicted answer is None"):
        metric(["Oslo"], None)  # type: ignore[arg-type]


def test_half_of_the_items_are_enough_for_a_list() -> None:
    drugs = [["infliximab"], ["adalimumab", "Humira"], ["vedolizumab"], ["ustekinumab"]]
    assert substring_match_items(drugs, "Humira and infliximab") == 1.0
    assert substring_match_items(drugs, "infliximab") == 0.0


def test_two_synonyms_of_one_item_count_once() -> None:
    assert substring_match_items([["adalimumab", "Humira"], ["a b"], ["c d"]], "Humira (adalimumab)") == 0.0


def test_half_of_an_odd_list_is_rounded_up() -> None:
    items = [["rome"], ["oslo"], ["paris"]]
    assert substring_match_items(items, "rome") == 0.0
    assert substring_match_items(items, "rome, oslo") == 1.0


def test_a_list_without_items_or_with_a_blank_item_is_refused() -> None:
    with pytest.raises(EvaluationError, match="gold items are"):
        substring_match_items([], "rome")
    with pytest.raises(EvaluationError, match="Item 1: There are no gold answers"):
        substring_match_items([["rome"], []], "rome")


def test_similarity_is_the_cosine_with_the_nearest_reference(keyword_embedder: Callable[..., object]) -> None:
    embedder = keyword_embedder("rome", "oslo")
    assert answer_similarity(["rome"], "rome and oslo", embedder) == pytest.approx(math.sqrt(0.5))  # type: ignore[arg-type]
    assert answer_similarity(["paris", "oslo"], "oslo", embedder) == pytest.approx(1.0)  # type: ignore[arg-type]
    assert answer_similarity(["rome"], "oslo", embedder) == 0.0  # type: ignore[arg-type]
