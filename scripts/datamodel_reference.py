"""Writes docs/datamodel.md from the records and the programs' declarations: `python scripts/datamodel_reference.py`."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from kraq_dspy.spec import ProgramSpec
from kraq_dspy.workspace.registry import PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraq_dspy"
PAGE = ROOT / "docs" / "datamodel.md"
IN_PREDICTIONS = (
    "StageSeconds", "Draft", "FailedDraft", "Score", "SubAnswer", "FaqSearch", "Rejected",
)  # fmt: skip
"""What predictions hold besides records, and stands beside the program that makes it."""
PROPERTY = "  # property"
ATTRIBUTES = r"(?m)^Attributes:\n((?: {4}.*\n?)+)\n?"

HEAD = """# Data model

<!-- Written by scripts/datamodel_reference.py from kraq_dspy/records.py and the programs: change it there. -->

Every record is a frozen dataclass. `kraq_dspy/records.py` defines the records in the order in which kraq makes them:

Document → Chunk → Extraction → Entity, Relationship, Claim → Community → Summary → Question → Hit.

A `Chunk` is what the guide calls a passage. In an open index, `index.all(Chunk)` yields the records of a kind, and
`index.count(Chunk)` counts them.
"""
PREDICTIONS = """
## Predictions

Every program returns a `dspy.Prediction` with `answer` (text), `hits` (a sequence of `Hit`) and `timings` (seconds by
stage; "wall" for the whole question). `Workspace.ask` adds `next_questions`: up to three `SuggestedQuestion`s. Each has
a stored question near yours (`question`), the first passage for it (`passage`), and the cosine of both questions
(`similarity`).
"""


def page() -> str:
    parts = [HEAD, "\n## Records\n"]
    body = ast.parse((PACKAGE / "records.py").read_text("utf-8")).body
    parts += [section(node) for node in body if isinstance(node, ast.ClassDef)]
    parts += [PREDICTIONS, *map(prediction, PROGRAMS.own.values())]
    parts += ["\n### Types in predictions\n"]
    parts += [section(class_named(name), level=4) for name in IN_PREDICTIONS]
    return "".join(parts)


def section(record: ast.ClassDef, level: int = 3) -> str:
    """The class's docstring and its fields: a list if the docstring describes them, otherwise a block of code."""
    text = ast.get_docstring(record) or ""
    described = descriptions(text)
    text = re.sub(ATTRIBUTES, "", text)
    if described:
        shown = "\n".join(
            f"- `{name}{rest.replace(PROPERTY, '')}`"
            + (" (property)" if PROPERTY in rest else f": {described[name]}" if name in described else "")
            for name, rest in fields(record)
        )
    else:
        shown = "\n".join(["```py", *(name + rest for name, rest in fields(record)), "```"])
    return f"\n{'#' * level} {record.name}\n\n{wrapped(text)}\n\n{shown}\n"


def descriptions(docstring: str) -> dict[str, str]:
    """What the section "Attributes" says of each field, on one line."""
    section = re.search(ATTRIBUTES, docstring)
    found = re.findall(r"(?m)^    (\w+): (.+(?:\n {8}.+)*)", section[1] if section else "")
    return {name: " ".join(text.split()) for name, text in found}


def fields(record: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The name of each field and property, and what stands behind it: its type and its default."""
    for node in record.body:
        if isinstance(node, ast.AnnAssign):
            default = f" = {default_of(node.value)}" if node.value is not None else ""
            yield ast.unparse(node.target), f": {annotation(node.annotation)}{default}"
        elif isinstance(node, ast.FunctionDef) and node.returns is not None and is_property(node):
            yield node.name, f": {annotation(node.returns)}{PROPERTY}"


def is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def annotation(node: ast.expr) -> str:
    return ast.unparse(node).strip("'")


def default_of(value: ast.expr) -> str:
    """As a reader would write it: `field(default_factory=dict)` is `{}`."""
    text = ast.unparse(value)
    factories = {"field(default_factory=dict)": "{}", "field(default_factory=list)": "[]"}
    return "computed" if "init=False" in text else factories.get(text, text)


def prediction(spec: ProgramSpec) -> str:
    text = wrapped(told_of_prediction(class_named(spec.class_name)))
    return f"\n### Prediction of `{spec.name}`\n\n{text}\n"


def told_of_prediction(program: ast.ClassDef) -> str:
    """The paragraph of the class's docstring that begins with "The prediction". ValueError where there is none."""
    for paragraph in re.split(r"\n\s*\n", ast.get_docstring(program) or ""):
        if paragraph.startswith("The prediction"):
            return paragraph
    raise ValueError(f"The docstring of {program.name} does not say what its prediction has.")


def class_named(name: str) -> ast.ClassDef:
    """The one class of the package with this name. ValueError where there is none, or more than one."""
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if f"class {name}" in path.read_text("utf-8")]
    trees = [ast.parse(path.read_text("utf-8")) for path in files]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if len(classes) != 1:
        raise ValueError(f"There are {len(classes)} classes {name}; expected one.")
    return classes[0]


def wrapped(text: str) -> str:
    """In lines of 120, paragraph by paragraph; lists stay as they are."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    paragraphs = [
        paragraph for paragraph in paragraphs if not paragraph.lstrip().startswith(">>>")
    ]  # examples are for the docstring
    return "\n\n".join(
        paragraph if paragraph.startswith("- ") else textwrap.fill(" ".join(paragraph.split()), 120)
        for paragraph in paragraphs
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
