"""No pattern that meets a whole request takes a time that grows with the square of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.patterns import worst_units
from tests.patterns_child import slow_text


def test_the_measure_finds_a_quadratic_pattern_and_leaves_a_linear_one() -> None:
    assert slow_text(re.compile(r"\s+$"), "search")[1] > 24
    assert slow_text(re.compile(r"(?<!\s)\s+$"), "search") == ("", 0.0)
    assert "<!--" in worst_units(r"<!--.*?-->", re.DOTALL)


def test_patterns_of_requests_are_linear_up_to_a_million_characters() -> None:
    root = Path(__file__).resolve().parents[1]
    child = subprocess.run([sys.executable, "-m", "tests.patterns_child"], cwd=root, capture_output=True, text=True)
    lines = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
    slow = [line for line in lines if "growth" in line]
    assert slow == []
    assert lines[-1]["module"] == "all", f"stopped at {lines[-1]}: {child.stderr[-500:]}"
    assert len(lines) > 30
