from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.agreement import cohen_kappa, judge_agreement, known_agreements, write_agreement


def test_kappa_of_cohens_textbook_table() -> None:
    # 35 of 50 agree; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5 would: (0.7 - 0.5) / 0.5.
    assert cohen_kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)


def test_perfect_agreement_is_one_chance_is_zero_and_contradiction_negative() -> None:
    assert cohen_kappa(np.array([[3, 0], [0, 4]])) == pytest.approx(1.0)
    assert cohen_kappa(np.array([[2, 2], [2, 2]])) == pytest.approx(0.0)
    assert cohen_kappa(np.array([[0, 2], [2, 0]])) == pytest.approx(-1.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=3, max_size=30))
def test_it_agrees_with_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    gold, judged = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if len({*gold, *judged}) > 1:
        result = judge_agreement(
            {str(i): label for i, label in enumerate(gold)},
            {str(i): label for i, label in enumerate(judged)},
            judge="test",
            resamples=50,
        )
        assert result.kappa.estimate == pytest.approx(cohen_kappa_score(gold, judged), abs=1e-9)


def test_agreement_counts_what_the_judge_did_not_decide_apart() -> None:
    gold = {"q1": 1, "q2": 0, "q3": 1, "q4": 0}
    result = judge_agreement(gold, {"q1": 1, "q2": 1, "q3": 1}, judge="some/model")
    assert result.accuracy.estimate == pytest.approx(2 / 3)
    assert (result.n, result.n_failed, result.judge) == (3, 1, "some/model")
    assert result.confusion[(0, 1)] == 1
    assert result.confusion[(1, 1)] == 2


def test_the_interval_of_kappa_holds_the_estimate_and_shrinks_with_more_questions() -> None:
    def width(n: int) -> float:
        gold = {str(i): i % 2 for i in range(n)}
        judged = {str(i): (i % 2) ^ (i % 5 == 0) for i in range(n)}
        kappa = judge_agreement(gold, judged, judge="test").kappa
        assert kappa.low <= kappa.estimate <= kappa.high
        return kappa.high - kappa.low

    assert width(400) < 0.6 * width(100)


def test_what_has_no_kappa_is_refused() -> None:
    with pytest.raises(EvaluationError, match="one and the same label throughout"):
        judge_agreement({"a": 1, "b": 1}, {"a": 1, "b": 1}, judge="test")
    with pytest.raises(EvaluationError, match="decided none of the 1"):
        judge_agreement({"a": 1}, {}, judge="test")
    with pytest.raises(EvaluationError, match="'x', which has no gold label"):
        judge_agreement({"a": 1}, {"x": 1}, judge="test")


def test_what_was_measured_of_a_judge_is_found_by_its_model(tmp_path: Path) -> None:
    gold = {"a": True, "b": False, "c": True, "d": False}
    agreement = judge_agreement(gold, {**gold, "c": False}, judge="binary judge, gguf/m.gguf")
    (tmp_path / "squad" / "binary").mkdir(parents=True)
    write_agreement(agreement, "squad", tmp_path / "squad" / "binary")
    [words] = known_agreements("gguf/m.gguf", tmp_path)
    assert words.startswith("binary judge kappa 0.50 [")
    assert words.endswith("4 answers of squad")
    assert known_agreements("gguf/other.gguf", tmp_path) == []
