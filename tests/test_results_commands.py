"""Every command that the pages of results name is one of this version: its parser takes its words; nothing is run."""

import argparse
import itertools
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from kraq_dspy.apps.cli.program import make_app
from tests.test_docs import anchor

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "docs" / "results.md", *sorted(RESULTS.glob("*.md")))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


class ParsedError(Exception):
    """A script's parser took its words."""


def commands_of(page: Path) -> Iterator[str]:
    """The commands of a page's blocks of code, without comments and settings of the environment."""
    text = page.read_text("utf-8")
    joined = re.sub(r"\\\n\s*", "", text)
    for line in re.findall(r"(?m)^ {4}(.+)$", joined):
        for part in line.split("&&"):
            command = re.sub(r"\s+#.*$", "", part).strip()
            command = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command)  # OMP_NUM_THREADS=1
            if re.match(r"(?:kraq|python|make) \S", command):
                yield command


def mentioned_in(page: Path) -> Iterator[str]:
    """The commands that its sentences name, which may leave out what a command needs: "`kraq precompute --top-n`"."""
    prose = re.sub(r"(?m)^ {4}.+$", "", page.read_text("utf-8"))
    for command in re.findall(r"`(kraq [^`\n]+)`", prose):
        if "..." not in command:
            yield re.sub(r"\bID\b", "kraq-2", command)


@dataclass(frozen=True)
class Section:
    """A heading of a page with what stands below it, up to the next heading."""

    anchor: str
    depth: int
    text: str


def sections_of(page: Path) -> list[Section]:
    pieces = re.split(r"(?m)^(#+) (.+)$", page.read_text("utf-8"))
    return [
        Section(anchor(heading), len(marks), text)
        for marks, heading, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    ]


def has_a_command(text: str) -> bool:
    """Whether a block of code runs something of this project."""
    return bool(re.search(r"(?m)^ {4}(?:# )?(?:[A-Z_]+=\S+ )*(?:kraq|python|make) \S", text))


def command_stands_for(page: Path, fragment: str) -> bool:
    """Whether the section, one within it, or one that it is in says what makes its figures."""
    sections = sections_of(page)
    if not fragment:
        return any(has_a_command(section.text) for section in sections)

    place = next(i for i, section in enumerate(sections) if section.anchor == fragment)
    depth = sections[place].depth
    within = itertools.takewhile(lambda section: section.depth > depth, sections[place + 1 :])
    texts = [sections[place].text, *(section.text for section in within)]
    for section in reversed(sections[:place]):
        if section.depth < depth:
            depth = section.depth
            texts.append(section.text)
    return any(map(has_a_command, texts))


COMMANDS = sorted({(page.name, command) for page in PAGES for command in commands_of(page)})


MENTIONED = sorted({(page.name, command) for page in PAGES for command in mentioned_in(page)})


@pytest.fixture(scope="module")
def program() -> Any:
    return typer.main.get_command(make_app())


def parse(command: Any, words: list[str], parent: Any = None) -> None:
    """Raises the parser's own error for a word that it does not take."""
    with command.make_context(command.name, list(words), parent=parent) as context:
        if not hasattr(command, "resolve_command"):
            return
        left = [*getattr(context, "_protected_args", getattr(context, "protected_args", [])), *context.args]
        if not left:  # a group named without one of its commands: "`kraq faq`"
            return
        _, member, rest = command.resolve_command(context, left)
        parse(member, rest, context)


@pytest.mark.parametrize(("page", "command"), [each for each in COMMANDS if each[1].startswith("kraq ")])
def test_a_command_of_the_results_is_taken_by_the_program(page: str, command: str, program: Any) -> None:
    words = shlex.split(command)[1:]
    parse(program, words)
    tables = [word for word in words if word.endswith(".toml") and "/" in word]
    assert [table for table in tables if not (ROOT / table).is_file()] == []


@pytest.mark.parametrize(("page", "command"), MENTIONED)
def test_a_command_that_the_results_mention_is_there_with_its_options(page: str, command: str, program: Any) -> None:
    try:
        parse(program, shlex.split(command)[1:])
    except Exception as error:  # the parser of typer is a package of its own
        incomplete = ("MissingParameter", "NoArgsIsHelpError")
        if type(error).__name__ not in incomplete and "requires an argument" not in str(error):
            raise


@pytest.mark.parametrize(
    ("page", "command"),
    [each for each in COMMANDS if each[1].startswith("python ") and not each[1].startswith("python -m ")],
)
def test_a_benchmark_of_the_results_takes_its_options(page: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, script, *words = shlex.split(command)
    path = ROOT / script
    assert path.is_file(), script
    take = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *args: Any, **options: Any) -> Any:
        take(parser, words)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "argv", [script, *words])
    for folder in (path.parent, ROOT / "benchmarks", ROOT):
        monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(ParsedError):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize(("page", "command"), [each for each in COMMANDS if each[1].startswith("make ")])
def test_a_target_of_the_results_is_one_of_the_makefile(page: str, command: str) -> None:
    assert set(shlex.split(command)[1:]) <= TARGETS


def test_every_figure_of_the_claims_leads_to_the_command_that_makes_it() -> None:
    claims = (RESULTS / "claims.md").read_text("utf-8")
    links = sorted(set(re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", claims)))

    assert len(links) > 15
    lacking = [link for link in links if not command_stands_for(RESULTS / link[0], link[1])]
    assert lacking == []


def test_every_row_of_the_claims_has_a_figure_with_a_link_or_was_not_run() -> None:
    claims = (RESULTS / "claims.md").read_text("utf-8")
    rows = [line.strip("|\n").split("|") for line in claims.splitlines() if line.startswith("| ")]
    rows_of_claims = [row for row in rows if row[0].strip() != "claim"]

    assert len(rows_of_claims) > 30
    for _, _, figure, _, verdict in rows_of_claims:
        assert "](" in figure or verdict.strip() == "not run", figure


def test_a_section_without_a_command_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n## B\n\n    kraq demo\n\n### C\n\n.5\n\n## D\n\n.6\n", "utf-8")
    assert command_stands_for(page, "c")
    assert command_stands_for(page, "a")
    assert not command_stands_for(page, "d")


def test_a_command_that_is_none_would_be_seen(program: Any) -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(program, ["precompute", "a.kraq", "--passages", "3"])
    with pytest.raises(Exception, match="no table 'kraq-99'"):
        parse(program, ["bench", "kraq-99"])
    assert len(COMMANDS) > 60
