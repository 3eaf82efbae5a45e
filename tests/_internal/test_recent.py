"""Tests that values asked for lately are kept, a bounded number of them, and made together where they are not known."""

import pytest

from kraq_dspy._internal.recent import Recent


def doubled(numbers: list[int]) -> list[int]:
    made.extend(numbers)
    return [2 * number for number in numbers]


made: list[int] = []


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


def test_a_value_is_made_once_and_values_come_in_the_order_of_the_keys() -> None:
    recent = Recent[int, int](size=10)
    assert recent.of([3, 1, 3], doubled) == [6, 2, 6]
    assert recent.of([1, 2, 3], doubled) == [2, 4, 6]
    assert made == [3, 1, 2]


def test_the_keys_asked_for_last_stay() -> None:
    recent = Recent[int, int](size=2)
    recent.of([1], doubled)
    recent.of([2], doubled)
    recent.of([1], doubled)
    recent.of([3], doubled)  # 2 goes
    assert recent.of([1, 3], doubled) == [2, 6]
    assert made == [1, 2, 3]
    recent.of([2], doubled)
    assert made == [1, 2, 3, 2]


def test_more_keys_than_are_kept_are_answered_too() -> None:
    assert Recent[int, int](size=2).of([1, 2, 3], doubled) == [2, 4, 6]


def test_an_error_keeps_nothing_and_an_emptied_one_makes_values_again() -> None:
    recent = Recent[int, int](size=2)
    with pytest.raises(ZeroDivisionError):
        recent.of([0], lambda numbers: [1 // number for number in numbers])
    assert recent.of([0], doubled) == [0]
    recent.clear()
    assert recent.of([0], doubled) == [0]
    assert made == [0, 0]
