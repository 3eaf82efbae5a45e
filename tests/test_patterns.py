"""No pattern of the package takes a time that grows with the square of the text that it meets."""

import re

import pytest

import tests.slow_patterns
from kraq_dspy.embedded import answer
from tests.patterns import is_bounded, patterns, worst_units
from tests.slow_patterns import digest, measured, slow_patterns, slow_text


def test_the_measure_finds_quadratic_patterns_and_leaves_linear_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tests.slow_patterns, "LIMIT_S", 0.5)  # which one of these takes up
    assert slow_text(re.compile(r"\s+$"), "search")
    assert slow_text(re.compile(r"[ \t]*(yaml)?[ \t]*\n"), "match")
    assert slow_text(re.compile(r"(?:a+)+b"), "search")
    assert slow_text(re.compile(r"(?<!\s)\s+$"), "search") == ""
    assert "<!--" in worst_units(r"<!--.*?-->", re.DOTALL)
    assert is_bounded(r"\b(?:what|which) (?:year|date)\b", 0)
    assert not is_bounded(r"a(?=b*c)", 0)


@pytest.fixture(scope="module")
def places() -> dict[tuple[str, int, str], str]:
    return patterns()


def test_patterns_are_found_in_names_containers_records_and_calls(places: dict[tuple[str, int, str], str]) -> None:
    """A call of `re` whose pattern cannot be told ends the search with an error."""
    sources = {source for source, _, _ in places}
    assert answer._EITHER.pattern in sources
    assert r"[^\W\d_]{2}" in sources  # written in a function
    assert len(places) > 400


def test_every_pattern_is_linear_up_to_a_million_characters(places: dict[tuple[str, int, str], str]) -> None:
    """Patterns that were measured are known by their digest; one that is new or was changed is measured now."""
    known = measured()
    unknown = {key: place for key, place in places.items() if digest(*key) not in known}
    assert slow_patterns(unknown) == []
    assert len(unknown) < 40, "keep what was measured, it takes long: python -m tests.slow_patterns --write"
