"""A terminal whose width is told as nothing still shows what the commands print."""

import os
import subprocess
import sys

import pytest

SHOW = "from kraq_dspy.apps.cli.terminal import output; output.print('It sails.'); print(output.width)"


@pytest.mark.parametrize(("columns", "width"), [("0", "80"), ("00", "80"), ("abc", "80"), ("-5", "80"), ("60", "60")])
def test_a_terminal_of_no_columns_is_taken_for_none(columns: str, width: str) -> None:
    environment = {**os.environ, "COLUMNS": columns, "LINES": columns}
    shown = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.split("\n")[:2] == ["It sails.", width]
