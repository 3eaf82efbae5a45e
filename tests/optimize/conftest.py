"""A model that learns from its prompt, and rows about towers that a reader can check."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.optimize.rows import Row

LEARNER = Path(__file__).resolve().parents[2] / "benchmarks" / "learner.py"


@pytest.fixture(scope="session")
def learner() -> Any:
    """The module `benchmarks/learner.py`: `learner.Learner()` is an engine, `learner.learner_model(engine)` a model."""
    spec = importlib.util.spec_from_file_location("learner", LEARNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["learner"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def engine(learner: Any) -> Any:
    return learner.Learner()


@pytest.fixture
def models(learner: Any, engine: Any) -> dict[str, dspy.LM]:
    return {"default": learner.learner_model(engine)}


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
