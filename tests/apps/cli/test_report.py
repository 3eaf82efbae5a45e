"""Reads what a build prints of its failures: the first of each kind, and how many are like it."""

import pytest

from kraq_dspy.apps.cli.progress import show_failures
from kraq_dspy.records import Failure


def test_failures_of_one_kind_are_told_by_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Failure("load", f"a.jsonl#{n}", f"Line {n}: There is no column 'text'.") for n in range(1, 62)]
    show_failures([*rows, Failure("extract", "c1", "No reply."), Failure("load", "b", "No reply.")], "kraq status x")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "63 items could not be done (all: kraq status x); the rest is complete.",
        "  load: a.jsonl#1: Line 1: There is no column 'text'.",
        "    and 60 more like it",
        "  extract: c1: No reply.",
        "  load: b: No reply.",
    ]


def test_kinds_beyond_the_limit_are_counted_with_all_of_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = ["red", "green", "green", "blue", "blue", "blue"]
    show_failures([Failure("ask", f"q{n}", reason) for n, reason in enumerate(reasons)], "kraq status x", limit=1)
    assert capsys.readouterr().err.splitlines()[1:] == ["  ask: q0: red", "  and 5 more"]
