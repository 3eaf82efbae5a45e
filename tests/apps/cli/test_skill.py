"""SKILL.md, which tells an agent how to use the command line: every command and option in it exists."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from tests.whole_program import app

SKILL = (Path(__file__).resolve().parents[3] / "SKILL.md").read_text("utf-8")
LINES = [line.strip() for line in re.findall(r"(?m)^ {4}(kraq .*)$", SKILL)]


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_can_be_read_by_its_command(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    context = command.make_context(command.name, words, resilient_parsing=False)
    assert not context.args


def test_it_has_a_name_a_description_and_the_commands_that_an_agent_needs() -> None:
    assert re.match(r"---\nname: kraq\ndescription: .{40,1024}\n---\n", SKILL)
    used = {line.split()[1] for line in LINES}
    assert {"index", "questions", "ask", "add", "check", "serve", "mcp", "catalogue"} <= used
