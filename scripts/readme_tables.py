"""Writes the tables of programs and retrievers into the guide, between their markers, from the specs."""

import re
from pathlib import Path

from kraq_dspy.indexing.prepare.preparations import required_commands
from kraq_dspy.spec import ProgramSpec
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "guide" / "programs.md",)


def program_table() -> str:
    rows = ["| `--program` | class | does | first run | source |", "|---|---|---|---|---|"]
    rows += [
        f"| `{spec.name}` | `{spec.class_name}` | {spec.help} | {_prepared(spec)} | {spec.source} |"
        for spec in PROGRAMS.own.values()
    ]
    return "\n".join(rows)


def retriever_table() -> str:
    rows = ["| `--retriever` | finds | source |", "|---|---|---|"]
    rows += [f"| `{spec.name}` | {spec.help} | {spec.source} |" for spec in RETRIEVERS.own.values()]
    return "\n".join(rows)


def with_tables(text: str) -> str:
    """The text with both tables as they are now. Raises ValueError where a marker is missing."""
    for name, table in (("programs", program_table()), ("retrievers", retriever_table())):
        begin, end = f"<!-- {name}: made by scripts/readme_tables.py -->", f"<!-- end of {name} -->"
        text, count = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", f"{begin}\n{table}\n{end}", text, flags=re.S)
        if count != 1:
            raise ValueError(f"The page has {count} times the marker {begin!r}; expected it once, with its end.")
    return text


def _prepared(spec: ProgramSpec) -> str:
    """What must be made before it answers."""
    return ", ".join(f"`{command}`" for command in required_commands(spec.prepared))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
