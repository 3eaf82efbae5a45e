"""The reference of the commands, and what every help text must be."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.whole_program import app

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def writer() -> Any:
    """`scripts/commands_reference.py`, which writes help and the page."""
    spec = importlib.util.spec_from_file_location("commands_reference", ROOT / "scripts" / "commands_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_and_help_are_what_the_code_says(writer: Any) -> None:
    again = "run: python scripts/commands_reference.py"
    assert writer.FILE.read_text("utf-8") == writer.reference(), again
    assert writer.HELP_FILE.read_text("utf-8") == writer.written(writer.help_of_commands()), again


def commands(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "load"):
        command.load()
    yield words, command
    for name, member in getattr(command, "commands", {}).items():
        yield from commands(member, (*words, name))


EVERY = dict(commands(get_command(app)))


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_option_says_what_it_is(words: tuple[str, ...]) -> None:
    for parameter in EVERY[words].params:
        assert parameter.help or parameter.name in ("install_completion", "show_completion"), parameter.name


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_fits_into_80_columns_and_cuts_no_address(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


@pytest.mark.parametrize("words", [each for each in EVERY if each], ids=" ".join)
def test_help_is_a_screen_of_24_lines(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=98).stdout  # click leaves two columns free
    assert len(shown.splitlines()) <= 24, shown


PRINTED = re.compile(r"`kraq ([a-z]+)|\bcommand\([\"']([a-z]+)")


def test_every_command_that_the_code_names_exists() -> None:
    names = {words[0] for words in EVERY if words}
    lost = {}
    for file in sorted((ROOT / "kraq_dspy").rglob("*.py")):
        named = {next(filter(None, match)) for match in PRINTED.findall(file.read_text("utf-8"))}
        if named - names:
            lost[file.name] = named - names
    assert lost == {}
