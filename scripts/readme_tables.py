"""Writes tables into the guide and into the signatures, between their markers, from what the code declares.

They are those of programs and retrievers, from their specs, and that of the steps that are optimized by name.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kraq_dspy import signatures
from kraq_dspy.eval.metrics.for_dspy import METRICS
from kraq_dspy.indexing.prepare.preparations import required_commands
from kraq_dspy.optimize import STEPS, OptimizableStep
from kraq_dspy.optimize.asked_by import ASKERS, asked_by
from kraq_dspy.spec import ProgramSpec
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS_PAGE = ROOT / "docs" / "guide" / "programs.md"
RETRIEVERS_PAGE = ROOT / "docs" / "guide" / "retrievers.md"
STEPS_PAGE = ROOT / "docs" / "reference" / "steps.md"
SIGNATURES = ROOT / "kraq_dspy" / "signatures" / "__init__.py"
WIDTHS = (21, 52, 18)
"""Of the columns of the table in the signatures, in characters."""

CALLS = {
    "traditional": "1",
    "combined": "1",
    "speculative": "10",
    "efficient": "10",
    "graph-local": "1",
    "graph-global": "1, and one for each 8,000 tokens of summaries",
    "qa-rag": "3 to 13",
    "k2rag": "about 12",
    "qa-search": "0 to 2, and those of another program",
    "naive-graph": "2",
}
"""Calls of a model for one question, with the programs' defaults."""


def program_table() -> str:
    rows = ["| `--program` | model calls | class | does | first run | source |", "|---|---|---|---|---|---|"]
    rows += [
        f"| `{spec.name}` | {CALLS[spec.name]} | `{spec.class_name}` | {spec.help} | {_prepared(spec)} "
        f"| {spec.source} |"
        for spec in PROGRAMS.own.values()
    ]
    return "\n".join(rows)


def retriever_table() -> str:
    rows = ["| `--retriever` | finds | source |", "|---|---|---|"]
    rows += [f"| `{spec.name}` | {spec.help} | {spec.source} |" for spec in RETRIEVERS.own.values()]
    return "\n".join(rows)


def states_table() -> str:
    """A row for each part of kraq that calls signatures, with the commands that load them."""
    rows = ["| commands that load it | in Python | signatures |", "|---|---|---|"]
    for key, asker in ASKERS.items():
        names = [f"`{name}`" for name in signatures.NAMES if key in asked_by(name)]
        commands = ", ".join(f"`{command}`" for command in asker.commands)
        rows += [f"| {commands} | {asker.in_python} | {', '.join(names)} |"] if names else []
    return "\n".join(rows)


def steps_table() -> str:
    """A row for each step that is optimized by name, for a reader of the guide."""
    rows = [
        "| step | signatures | module | role | inputs | label | metrics (the first by default) | made from the index |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for step in STEPS.values():
        cells = (
            step.name,
            _code(signature.__name__ for signature in step.signatures),
            _code([step.module.__name__]),
            step.role,
            _code(step.inputs),
            _code(_shown_right(step)),
            _metrics(step),
            step.own_rows,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def steps_comment() -> str:
    """The same, shorter, for a reader of the signatures: step, signatures, module, default metric."""
    lines = []
    for step in STEPS.values():
        signatures = ", ".join(signature.__name__ for signature in step.signatures)
        columns = zip((step.name, signatures, step.module.__name__), WIDTHS, strict=True)
        lines.append("#   " + "".join(text.ljust(width) for text, width in columns) + step.metric_names[0])
    return "\n".join(lines)


def written() -> dict[Path, str]:
    """The files that hold tables, with their texts as they should be."""
    return {
        PROGRAMS_PAGE: with_block(PROGRAMS_PAGE.read_text("utf-8"), "programs", program_table()),
        RETRIEVERS_PAGE: with_block(RETRIEVERS_PAGE.read_text("utf-8"), "retrievers", retriever_table()),
        STEPS_PAGE: with_block(
            with_block(STEPS_PAGE.read_text("utf-8"), "steps", steps_table()), "states", states_table()
        ),
        SIGNATURES: with_block(SIGNATURES.read_text("utf-8"), "steps", steps_comment(), "# {}"),
    }


def with_block(text: str, name: str, table: str, comment: str = "<!-- {} -->") -> str:
    """The text with the table between its markers. Raises ValueError where a marker is missing."""
    begin = comment.format(f"{name}: made by scripts/readme_tables.py")
    end = comment.format(f"end of {name}")
    block = f"{begin}\n{table}\n{end}"
    text, count = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda match: block, text, flags=re.S)
    if count != 1:
        raise ValueError(f"The page has {count} times the marker {begin!r}; expected it once, with its end.")
    return text


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shown_right(step: OptimizableStep) -> Sequence[str]:
    """The fields that say what is right; of rows with questions, the one that counts."""
    return ("answers",) if "answers" in step.right else tuple(step.right)[: 1 if step.name == "judging" else None]


def _metrics(step: OptimizableStep) -> str:
    if step.metric_names == tuple(METRICS):
        return f"{step.metric_names[0]}, {step.metric_names[1]}, ... ([all](../guide/evaluate.md#metrics))"
    return ", ".join(step.metric_names)


def _prepared(spec: ProgramSpec) -> str:
    """What must be made before it answers."""
    return ", ".join(f"`{command}`" for command in required_commands(spec.prepared))


if __name__ == "__main__":
    for page, text in written().items():
        page.write_text(text, "utf-8")
