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

HEAD = """# Data model

<!-- Written by scripts/datamodel_reference.py from kraq_dspy/records.py and the programs: change it there. -->

Every record is a frozen dataclass. `kraq_dspy/records.py` defines them all, in the order in which the
pipeline makes them:

Document → Chunk → Extraction → Entity, Relationship, Claim → Community → Summary → Question → Hit.

Ids point back: a question names its community, its chunks and its documents. Apart from document ids, which come with
the corpus, an id is a hash of content. In an open index, `index.all(Chunk)` yields the records of a kind and
`index.count(Chunk)` counts them.
"""
PREDICTIONS = """
## Predictions

Every program returns a `dspy.Prediction` with `answer` (text), `hits` (a sequence of `Hit`) and `timings` (seconds by
stage, "wall" all together). `Workspace.ask` adds `next_questions`, up to three
`SuggestedQuestion`: a stored question near the one that was asked (`question`), the passage of its community that a
search for it finds first (`passage`), and their cosine (`similarity`). The program's own keys:
"""


def page() -> str:
    parts = [HEAD, "\n## Records\n"]
    body = ast.parse((PACKAGE / "records.py").read_text("utf-8")).body
    parts += [section(node) for node in body if isinstance(node, ast.ClassDef)]
    parts += [PREDICTIONS, "\n", prediction_table(), "\n"]
    classes = dict.fromkeys(spec.class_name for spec in PROGRAMS.own.values())
    parts += [
        f"\n### In a prediction of {name}\n\n{wrapped(told_of_prediction(class_named(name)))}\n" for name in classes
    ]
    parts += ["\n### Types in predictions\n"]
    parts += [section(class_named(name), level=4) for name in IN_PREDICTIONS]
    return "".join(parts)


def section(record: ast.ClassDef, level: int = 3) -> str:
    """The class's docstring, and a row for each field and property."""
    rows = ["| field | type | default |", "|---|---|---|", *fields(record)]
    return f"\n{'#' * level} {record.name}\n\n{wrapped(ast.get_docstring(record) or '')}\n\n" + "\n".join(rows) + "\n"


def fields(record: ast.ClassDef) -> Iterator[str]:
    for node in record.body:
        if isinstance(node, ast.AnnAssign):
            default = f"`{default_of(node.value)}`" if node.value is not None else ""
            yield f"| `{ast.unparse(node.target)}` | {code(node.annotation)} | {default} |"
        elif isinstance(node, ast.FunctionDef) and node.returns is not None and is_property(node):
            yield f"| `{node.name}` (property) | {code(node.returns)} | |"


def is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def code(annotation: ast.expr) -> str:
    return f"`{ast.unparse(annotation).strip(chr(39))}`".replace("|", "\\|")


def default_of(value: ast.expr) -> str:
    """As a reader would write it: `field(default_factory=dict)` is `{}`."""
    text = ast.unparse(value)
    factories = {"field(default_factory=dict)": "{}", "field(default_factory=list)": "[]"}
    return "computed" if "init=False" in text else factories.get(text, text)


def prediction_table() -> str:
    rows = ["| `--program` | class | keys besides `answer`, `hits`, `timings` |", "|---|---|---|"]
    return "\n".join([*rows, *map(prediction_row, PROGRAMS.own.values())])


def prediction_row(spec: ProgramSpec) -> str:
    anchor = f"#in-a-prediction-of-{spec.class_name.lower()}"
    keys = ", ".join(f"`{key}`" for key in spec.keys)
    if spec.takes == "program":
        keys += "; and those of the program behind it, if that answered"
    return f"| `{spec.name}` | [`{spec.class_name}`]({anchor}) | {keys} |"


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
