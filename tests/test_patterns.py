"""No pattern of the package takes a time that grows with the square of the text that it meets."""

import re

import pytest

from tests.patterns import PACKAGE, is_bounded, patterns, worst_units
from tests.slow_patterns import digest, measured, slow_patterns, slow_text


def test_the_measure_finds_quadratic_patterns_and_leaves_linear_ones() -> None:
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


def test_patterns_are_found_wherever_the_package_has_them(places: dict[tuple[str, int, str], str]) -> None:
    """Each call of `re` is read, or the search ends with the line that it does not understand; those that are held are
    looked for in names, containers and records."""
    files = [path for path in PACKAGE.rglob("*.py") if "re.compile(" in path.read_text("utf-8")]
    modules = {place.removeprefix("kraq_dspy.") for place in places.values()}
    assert len(files) <= len(modules)
    assert any("Wie kann man" not in source and source.endswith("(?:en|ern|eln)") for source, _, _ in places)


def test_every_pattern_is_linear_up_to_a_million_characters(places: dict[tuple[str, int, str], str]) -> None:
    """Patterns that were measured are known by their digest; one that is new or was changed is measured now."""
    known = measured()
    unknown = {key: place for key, place in places.items() if digest(*key) not in known}
    assert slow_patterns(unknown) == []
    assert len(unknown) < 40, "keep what was measured, it takes long: python -m tests.slow_patterns --write"
