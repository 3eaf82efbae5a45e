"""Tests that a command line loads little before it knows what it is asked."""

import subprocess
import sys


def test_help_waits_for_nothing_that_takes_long() -> None:
    command = "import sys, kraq_dspy.apps.cli.program as p; p.make_app(); print(sorted({0} & set(sys.modules)))"
    heavy = "{'numpy', 'dspy', 'torch', 'pyarrow', 'starlette', 'igraph', 'sqlite3', 'kraq_dspy.apps.cli.options'}"
    done = subprocess.run([sys.executable, "-c", command.format(heavy)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "kraq_dspy", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kraq ")
