"""The arithmetic of scores for any log-probabilities: what the papers' formulas imply."""

import math

from hypothesis import given, strategies as st

from kraq_dspy.models.lms.logprobs import mean_logprob
from kraq_dspy.programs.speculative.drafts import Draft
from kraq_dspy.programs.speculative.scoring import best, kraq_score

LOGPROBS = st.lists(st.floats(-60, 0), min_size=1, max_size=40)


def draft(number: int, rationale: list[float], response: list[float]) -> Draft:
    return Draft(number, (number,), "r", "a", 0.0, tuple(rationale), tuple(response))


@given(LOGPROBS)
def test_a_mean_lies_between_the_extremes_and_does_not_depend_on_the_order(row: list[float]) -> None:
    assert min(row) - 1e-9 <= mean_logprob(row) <= max(row) + 1e-9
    assert math.isclose(mean_logprob(row), mean_logprob(row[::-1]), abs_tol=1e-9)


@given(LOGPROBS, LOGPROBS, LOGPROBS, st.booleans())
def test_a_kraq_score_is_the_sum_of_its_parts_and_bounded(
    rationale: list[float], response: list[float], verdict: list[float], supported: bool
) -> None:
    score = kraq_score(draft(0, rationale, response), supported=supported, verdict=verdict)
    assert score.total == sum(score.parts.values())
    assert score.parts["draft"] <= math.log(2) + 1e-9  # a sum of two probabilities
    assert score.parts["self_contain"] <= 1e-9
    assert score.parts["self_reflect"] <= 1e-9
    assert not math.isnan(score.total)


@given(LOGPROBS, LOGPROBS, st.floats(-30, -0.001))
def test_yes_and_no_of_the_same_confidence_share_one(
    rationale: list[float], response: list[float], logprob: float
) -> None:
    one = draft(0, rationale, response)
    yes = kraq_score(one, supported=True, verdict=[logprob]).parts["self_reflect"]
    no = kraq_score(one, supported=False, verdict=[logprob]).parts["self_reflect"]
    assert math.isclose(math.exp(yes) + math.exp(no), 1.0, abs_tol=1e-9)


@given(st.lists(st.tuples(LOGPROBS, LOGPROBS), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_best_draft_is_the_same_in_any_order(rows: list[tuple[list[float], list[float]]], chance: object) -> None:
    drafts = [draft(number, *row) for number, row in enumerate(rows)]
    scores = [kraq_score(one, supported=True, verdict=[-0.1]) for one in drafts]
    chosen = best(drafts, scores)
    assert scores[chosen].total == max(score.total for score in scores)
    order = list(range(len(drafts)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    again = best([drafts[i] for i in order], [scores[i] for i in order])
    assert scores[order[again]].total == scores[chosen].total
