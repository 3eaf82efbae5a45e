"""The README's examples run as they are printed, and its commands exist."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import WarmShell

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_example_asks_what_its_corpus_holds() -> None:
    code = blocks("python")[0]
    [corpus] = re.findall(r'"(examples/.*?)"', code)
    [question] = re.findall(r'"([^"]*\?)"', code)
    rows = map(json.loads, (ROOT / corpus).read_text("utf-8").splitlines())
    assert [row["title"] for row in rows if row["title"] in question]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_example_runs(number: int, tmp_path: Path, kraq: WarmShell) -> None:
    for corpus in re.findall(r'"(examples/.*?)"', code := blocks("python")[number]):  # its beginning: enough to run
        (tmp_path / corpus).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / corpus).write_text(
            "".join((ROOT / corpus).read_text("utf-8").splitlines(keepends=True)[:12]), "utf-8"
        )
    process = kraq.python(code, cwd=tmp_path)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.strip()


def test_three_ways_in_are_named_each_in_five_lines() -> None:
    ways = re.findall(r"^\*\*(Ask|Evaluate|Compose)\*\*", README, re.MULTILINE)
    lines = [sum(bool(line.strip()) for line in code.splitlines()) for code in blocks("python")[:3]]
    assert ways == ["Ask", "Evaluate", "Compose"]
    assert max(lines) <= 5


def test_a_stranger_reads_it_in_five_minutes() -> None:
    assert len(README.split()) <= 900


def test_every_command_and_option_of_the_readme_exists(kraq: WarmShell) -> None:
    help_of: dict[str, str] = {}
    known = r"^    kraq (index|questions|ask|serve|eval|lm get)"
    for command in sorted(set(re.findall(known, README, re.MULTILINE))):
        help_of[command] = kraq(*command.split(), "--help").stdout
    assert "index" in help_of
    for line in README.splitlines():
        for command, text in help_of.items():
            if f"kraq {command} " in line:
                for option in re.findall(r"(--[a-z][a-z-]*)", line.split(f"kraq {command} ", 1)[1]):
                    assert option in text, f"kraq {command} has no {option}"


def test_every_file_that_is_linked_exists() -> None:
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert [target for target in links if not (ROOT / target).exists()] == []
