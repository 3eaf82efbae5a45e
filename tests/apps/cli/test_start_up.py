"""Tests that a command line loads little before it knows what it is asked."""

import subprocess
import sys

import pytest

HEAVY = {
    "numpy",
    "dspy",
    "kraq_dspy.settings",
    "torch",
    "pyarrow",
    "starlette",
    "igraph",
    "sqlite3",
    "kraq_dspy.apps.cli.options",
}
SHOWN = f"""
import sys
from kraq_dspy.apps.cli import main

try:
    main()
finally:
    print(sorted({HEAVY} & sys.modules.keys()))
"""


@pytest.mark.parametrize("words", ["--help", "ask --help", "ask -h", "faq list --help-all", "eval docs.kraq --help"])
def test_help_waits_for_nothing_that_takes_long(words: str) -> None:
    command = [sys.executable, "-c", SHOWN, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "kraq_dspy", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kraq ")
