"""SKILL.md and llms.txt, which tell an agent how to use the command line: every command and option in them exists."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from tests.whole_program import app

SKILL = (Path(__file__).resolve().parents[3] / "SKILL.md").read_text("utf-8")
LLMS = (Path(__file__).resolve().parents[3] / "llms.txt").read_text("utf-8")
PROJECT = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
LINES, OF_LLMS = ([line.strip() for line in re.findall(r"(?m)^ {4}(kraq .*)$", page)] for page in (SKILL, LLMS))
NEEDED = {
    "index", "questions", "ask", "remove", "update", "check", "serve", "mcp", "faq", "testset",
    "eval", "select",
}  # fmt: skip


@pytest.mark.parametrize("line", sorted({*LINES, *OF_LLMS}))
def test_every_command_line_can_be_read_by_its_command(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    command = get_command(app)
    while hasattr(command, "resolve_command"):  # `kraq eval DIR` stands for `kraq eval DIR`
        group = command.make_context(command.name, [], resilient_parsing=True)
        _, command, words = command.resolve_command(group, words)
    context = command.make_context(command.name, words, resilient_parsing=False)
    assert not context.args


def test_it_has_a_name_a_description_and_the_commands_that_an_agent_needs() -> None:
    assert re.match(r"---\nname: kraq\ndescription: .{40,1024}\n---\n", SKILL)
    assert {line.split()[1] for line in LINES} >= NEEDED
    assert {line.split()[1] for line in OF_LLMS} >= NEEDED
    for page in (SKILL, LLMS):
        assert "--fail-if-worse" in page, "the gate"


def test_both_name_each_extra_and_each_file_that_they_lead_to() -> None:
    for_users = PROJECT["optional-dependencies"].keys() - {"all", "dev", "docs", "vllm", "embedded"}
    table = SKILL[SKILL.index("| extra |") :]
    assert {name for name in for_users if f"`{name}`" not in table} == set()
    assert for_users <= set(re.findall(r"[\w-]+", LLMS[LLMS.index("Extras: ") :].partition(". An error")[0]))
    named = re.findall(r"(?:docs/|SKILL)[\w/-]*\.md", LLMS)
    assert len(named) > 10
    root = Path(__file__).resolve().parents[3]
    assert [name for name in named if not (root / name).is_file()] == []
