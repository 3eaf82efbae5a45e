"""Tests the list of small mutations: each place exists in the core, and what is left there still parses."""

import ast
from pathlib import Path

import pytest
from mutations import ADDED_LAST, PARTS, ROOT, Part, drawn, files_of, mutations_of, nearest_tests, package_parts

pytestmark = pytest.mark.slow

PART = Part("a part", ("a.py",), ())
SOURCE = '''
def share(k: int = 5) -> float:
    """Of 7."""
    if not k or k > 3:
        raise ValueError(f"k is {k + 1}")
    logger.info("asked for %d", k)
    total = 2 * k
    total += 1
    return total
'''


def broken() -> list[tuple[str, str]]:
    return [(each.before, each.after) for each in mutations_of(PART, "a.py", SOURCE.encode())]


def test_comparisons_arithmetic_conditions_numbers_and_statements_are_broken() -> None:
    assert broken() == [
        ("not k or k > 3", "((not k) and (k > 3))"),
        ("not k", "bool(k)"),
        ("k > 3", "k >= 3"),
        ("3", "4"),
        ("2 * k", "(2 / k)"),
        ("2", "3"),
        ("total += 1", "pass"),
        ("1", "2"),
    ]


def test_messages_docstrings_defaults_and_logs_are_left() -> None:
    assert not {"5", "7", "k + 1"} & {before for before, _ in broken()}
    assert not any("logger" in before for before, _ in broken())


def test_the_same_seed_draws_the_same_places_from_every_part_and_another_seed_others() -> None:
    places = drawn(50, seed=0)

    assert places == drawn(50, seed=0) != drawn(50, seed=1)
    assert {place.part for place in places} == {part.name for part in PARTS}


def test_half_of_a_draw_from_the_package_is_of_what_was_added_last() -> None:
    places = drawn(6, seed=0, parts=package_parts())
    added_last = files_of(ADDED_LAST)
    assert [place.part for place in places] == ["package", "added last"] * 3
    assert all(place.file in added_last for place in places if place.part == "added last")


def test_the_tests_beside_a_file_are_the_mirrored_ones_then_those_that_import_it_from_near_to_far() -> None:
    assert nearest_tests("eval/gate.py")[:2] == ("eval/test_gate.py", "eval/test_recorded.py")
    assert nearest_tests("apps/cli/label.py")[0] == "eval/test_labeling.py"  # as tests/where.toml says


def places_of_definitions(source: bytes) -> list[tuple[int, int]]:
    """Where the functions and classes of a file begin and end, in bytes."""
    line_starts = [0]
    for line in source.splitlines(keepends=True):
        line_starts.append(line_starts[-1] + len(line))

    places = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            assert node.end_lineno is not None
            places.append((line_starts[node.lineno - 1], line_starts[node.end_lineno]))
    return places


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_place_of_a_part_is_a_program_still_and_its_tests_are_there(part: Part) -> None:
    for file in part.files:
        source = (ROOT / "kraq_dspy" / file).read_bytes()
        definitions = places_of_definitions(source)
        for mutation in mutations_of(part, file, source):
            assert mutation.applied_to(source) != source
            start, end = next(place for place in definitions if place[0] <= mutation.start < place[1])
            changed = source[start : mutation.start] + mutation.after.encode() + source[mutation.end : end]
            ast.parse(changed)  # the whole file would take seconds for each part
    assert [test for test in part.tests if not Path(ROOT / "tests" / test).exists()] == []
