"""A model that learns from its prompt, and rows about towers that a reader can check."""

from collections.abc import Callable

import dspy
import pytest

from kraq_dspy.optimize.rows import Row
from tests.optimize.learner import Learner, learner_model


@pytest.fixture
def engine() -> Learner:
    return Learner()


@pytest.fixture
def models(engine: Learner) -> dict[str, dspy.LM]:
    return {"default": learner_model(engine)}


PLACES = ("Paris", "London", "Toronto", "Berlin", "Tokyo", "Sydney", "Moscow", "Dubai", "Seattle", "Prague")


def answering_row(number: int) -> Row:
    """Read in full, the answer is "1801. The London Tower was opened in 1801 by a queen who liked the view."."""
    place, year = PLACES[number % len(PLACES)], 1800 + number
    thing = ("Tower", "Bridge", "Museum", "Library")[number // len(PLACES)]
    return {
        "id": f"q{number}",
        "question": f"When was the {place} {thing} opened?",
        "passages": [f"The {place} {thing} was opened in {year} by a queen who liked the view."],
        "answers": [str(year)],
    }


def judging_row(number: int) -> Row:
    place, right = PLACES[number % len(PLACES)], number % 2 == 0
    return {
        "id": f"j{number}",
        "question": f"In which city is tower {number}?",
        "answers": [f"in the old town of {place}"],
        "answer": f"the old town of {place}" if right else f"a town near the sea, not in {PLACES[number % 7]} of old",
        "right": right,
    }


@pytest.fixture(scope="session")
def answering() -> Callable[[int], list[Row]]:
    return lambda count: [answering_row(number) for number in range(count)]


@pytest.fixture(scope="session")
def judging() -> Callable[[int], list[Row]]:
    return lambda count: [judging_row(number) for number in range(count)]
