"""Two halves decide if one is sure and the other agrees, human questions before them; their mean may leave it open."""

import pytest

from kraq_dspy.eval import decide
from kraq_dspy.eval.halves import decisions, has_halves, mean_of_halves
from kraq_dspy.eval.rows import ResultRow

N = 40


def scores(**found: int | range) -> dict[str, dict[str, float]]:
    """By half, the scores of a system that finds the first so many of its questions."""
    return {
        half: {f"{half} {n}": float(n in (range(each) if isinstance(each, int) else each)) for n in range(N)}
        for half, each in found.items()
    }


def few(found: int) -> dict[str, float]:
    return {f"human {n}": float(n < found) for n in range(10)}


@pytest.mark.parametrize(
    ("first", "second", "verdict", "reason"),
    [
        (scores(made=40, own=40), scores(made=20, own=20), 1, "both halves"),
        (scores(made=20, own=20), scores(made=40, own=40), -1, "both halves"),
        (scores(made=40, own=40), scores(made=20, own=39), 1, "both halves"),
        (scores(made=40, own=20), scores(made=20, own=40), 0, "open: one half is sure, and the other does not agree"),
        (scores(made=40, own=40), scores(made=20, own=40), 0, "open: one half is sure, and the other does not agree"),
        (scores(made=40, own=40), scores(made=33, own=33), 0, "open: neither half is sure"),
    ],
)
def test_a_pair_is_decided_if_one_half_is_sure_and_the_other_agrees(first, second, verdict, reason) -> None:  # type: ignore[no-untyped-def]
    decision = decide("a", "b", first, second)

    assert (decision.verdict, decision.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("human", "of_second", "verdict", "reason"),
    [
        (0, 10, -1, "human questions"),
        (5, 7, 0, "open: both halves agree, and the mean of human questions is against"),
        (7, 7, 1, "both halves"),
        (8, 7, 1, "both halves"),
    ],
)
def test_human_questions_come_before_the_halves(human: int, of_second: int, verdict: int, reason: str) -> None:
    first, second = scores(made=40, own=40), scores(made=20, own=20)

    decision = decide("a", "b", first | {"human": few(human)}, second | {"human": few(of_second)})

    assert (decision.verdict, decision.reason) == (verdict, reason)
    assert decision.to_dict()["differences"]["human"]["n"] == 10


@pytest.mark.parametrize(("n", "is_heard"), [(2, False), (3, True)])
def test_human_questions_are_heard_from_three_on(n: int, is_heard: bool) -> None:
    human = {"human": {f"human {number}": 1.0 for number in range(n)}}

    decision = decide("a", "b", scores(made=40, own=40) | human, scores(made=20, own=20) | human)

    assert ("human" in decision.differences) is is_heard


def test_questions_that_one_system_has_no_score_for_are_left_out() -> None:
    first, second = scores(made=40, own=40), scores(made=40, own=40)
    del second["made"]["made 3"]

    decision = decide("a", "b", first, second)

    assert {half: each.interval.n for half, each in decision.differences.items()} == {"made": 39, "own": 40}


def test_a_run_without_two_halves_of_twenty_has_no_decisions_and_every_half_weighs_alike() -> None:
    def rows(n_own: int) -> list[ResultRow]:
        halves = ["made"] * 60 + ["own"] * n_own
        return [
            ResultRow(f"q{n}", system, metrics={"recall": float(half == "made")}, extra={"half": half})
            for system in ("a", "b", "c")
            for n, half in enumerate(halves)
        ]

    assert decisions(rows(19), "recall") == []
    assert [(each.first, each.second) for each in decisions(rows(20), "recall")] == [("a", "b"), ("a", "c"), ("b", "c")]
    by_half = scores(made=40, own=0)
    assert has_halves(by_half)
    assert mean_of_halves({"made": {"x": 1.0}, "own": {str(n): 0.0 for n in range(9)}}) == 0.5


def test_a_failed_question_counts_as_nothing_and_an_undefined_one_not_at_all() -> None:
    rows = []
    for n in range(50):
        half = ("made", "own")[n % 2]
        rows.append(ResultRow(f"q{n}", "a", metrics={"recall": 1.0}, extra={"half": half}))
        rows.append(ResultRow(f"q{n}", "b", failure="refused", extra={"half": half}))
    rows.append(ResultRow("u", "a", extra={"half": "made", "undefined": ["recall"]}))

    [decision] = decisions(rows, "recall")

    assert decision.differences["made"].interval.estimate == 1.0
    assert decision.differences["made"].interval.n == 25
    assert decision.text == "a is better, by both halves"
