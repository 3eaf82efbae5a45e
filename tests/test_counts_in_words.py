"""Finds messages that would say "1 questions": a number before a noun in the plural goes through `errors.counted`."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "kraq_dspy"
NOUNS = (
    "attempts calls candidates cells chunks communities documents entities entries examples failures files "
    "groups items kinds labels lines metrics minutes models pages pairs passages programs questions readings "
    "replies results retrievers rows seconds sentences sheets statements stores systems texts topics vectors "
    "votes words"
)
MORE_THAN_ONE = {"len(pages)", "len(self.tried)", "', '.join(_KNOWN)", "self.status", "side", "source"}
"""What is more than one wherever its message is reached, and what is a name."""
PLURAL = re.compile(rf" (?:{'|'.join(NOUNS.split())})\b")


def counts_in(source: str) -> list[str]:
    """Each number of an f-string that a noun in the plural follows, where the number could be one."""
    shown = []
    for text in ast.walk(ast.parse(source)):
        if not isinstance(text, ast.JoinedStr):
            continue
        for number, behind in zip(text.values, text.values[1:], strict=False):
            if not isinstance(number, ast.FormattedValue) or not isinstance(behind, ast.Constant):
                continue
            written = ast.unparse(number.value)
            if PLURAL.match(str(behind.value)) and not written.isupper() and written not in MORE_THAN_ONE:
                shown.append(f"{written}{behind.value!s}"[:60])
    return shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('f"{n} questions"', ["n questions"]),
        ('f"{len(rows):,} rows are left out."', ["len(rows) rows are left out."]),
        ("f\"{counted(n, 'question')}\"", []),
        ('f"{MOST} passages"', []),
        ('f"{n} questioned"', []),
    ],
)
def test_a_number_before_a_plural_is_found(source: str, shown: list[str]) -> None:
    assert counts_in(source) == shown


def test_no_message_counts_one_thing_as_several() -> None:
    shown = {
        str(path.relative_to(PACKAGE)): texts
        for path in sorted(PACKAGE.rglob("*.py"))
        if (texts := counts_in(path.read_text("utf-8")))
    }
    assert shown == {}, "write counted(number, noun) of kraq_dspy.errors"
