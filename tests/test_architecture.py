"""Tests that the imports keep the direction of dependencies that docs/architecture.md gives."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import sources

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraq_dspy"
PICTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

FLOORS = (
    "errors",
    "records",
    "ports",
    "_internal",
    "settings",
    "asset",
    "language",
    "signatures",
    "embedded",
    "embedded_model",
    "models",
    "steps",
    "spec",
    "state",
    "retrievers",
    "programs",
    "indexing",
    "extend",
    "workspace",
    "testset",
    "eval",
    "papers",
    "testing",
    "optimize",
    "finetune",
    "apps",
)
"""A package may import itself and every package named before it."""


def imports() -> list[tuple[str, str, str]]:
    """(file, its package, the package that it imports), for every import of this library by itself."""
    arrows = []
    for each in sources().imports:
        file = each.file.removesuffix(".py")
        if file not in ("__init__", "__main__") and each.module.startswith("kraq_dspy."):
            arrows.append((file, file.split("/")[0], each.module.split(".")[1]))
    return arrows


def test_the_picture_of_the_packages_is_the_order_of_the_thresholds_and_what_is_on_disk() -> None:
    on_disk = {
        path.name + "/" * path.is_dir()
        for path in PACKAGE.iterdir()
        if (path.suffix == ".py" and path.stem not in ("__init__", "__main__")) or (path / "__init__.py").exists()
    }
    section = PICTURE.split("\n## Packages\n")[1].split("\n## ")[0]
    drawn = re.findall(r"^\| `([\w.]+/?)` \|", section, re.MULTILINE)
    assert drawn == [name + ("/" if f"{name}/" in on_disk else ".py") for name in FLOORS]
    assert set(drawn) == on_disk


def test_no_package_imports_one_that_stands_on_it() -> None:
    upward = [(file, target) for file, package, target in imports() if FLOORS.index(target) > FLOORS.index(package)]
    assert upward == []


def test_the_room_of_the_embedded_model_is_known_at_one_place() -> None:
    known = {file for file, package, target in imports() if target == "embedded" and package != "embedded"}
    assert known == {"embedded_model"}


def test_each_file_that_the_picture_names_exists_and_defines_what_is_named_with_it() -> None:
    files = re.findall(r"`((?:\w+/)+\w+\.py)`", PICTURE)
    names = re.findall(r"`((?:\w+/)*\w+\.py)` `([A-Z]\w+)`", PICTURE)
    assert len(files) > 12
    assert names
    assert [file for file in files if not (PACKAGE / file).is_file() and not (ROOT / file).is_file()] == []
    assert [(file, name) for file, name in names if not defines(file, name)] == []


def defines(file: str, name: str) -> bool:
    """Whether the file has a function, or a class with a method, of this name ("Workspace.ask")."""
    body: list[ast.stmt] = ast.parse((PACKAGE / file).read_text("utf-8")).body
    for part in name.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        definition = next((node for node in body if isinstance(node, kinds) and node.name == part), None)
        if definition is None:
            return False
        body = definition.body
    return True


def test_programs_know_stores_encoders_and_models_only_as_ports() -> None:
    allowed = {
        "programs/speculative",  # scoring reads token log-probabilities, which `lms` assigns to fields
        "retrievers/in_memory",  # plain texts are embedded with the packaged encoder where none is given
    }
    concrete = re.compile(r"kraq_dspy\.(models|asset\.store)\b")
    known = [
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for folder in ("programs", "retrievers")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if concrete.search(path.read_text("utf-8"))
    ]
    assert [file for file in known if not any(file.startswith(place) for place in allowed)] == []


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'cdlib', 'litellm', 'sentence_transformers', 'sklearn', 'dspy'}"
    command = f"import sys, kraq_dspy; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_and_asking_pull_in_neither_torch_nor_litellm_before_they_are_needed() -> None:
    command = "import sys, kraq_dspy; kraq_dspy.Workspace; kraq_dspy.build_index; print(sorted({0} & set(sys.modules)))"
    engines = "'cdlib', 'igraph', 'graspologic_native', 'matplotlib'"
    heavy = f"{{'torch', 'transformers', 'litellm', 'sklearn', 'pyarrow', {engines}}}"
    done = subprocess.run([sys.executable, "-c", command.format(heavy)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_sql_stands_in_the_stores_alone() -> None:
    speaks = re.compile(r"sqlite3|\.execute(many|script)?\(|\b(SELECT|INSERT INTO|DELETE FROM|PRAGMA)\b")
    places = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if speaks.search(path.read_text("utf-8"))]
    assert {"/".join(path.parts[:2]) for path in places} == {"asset/store"}


def test_the_rooms_of_the_sketch_are_there() -> None:
    """A star behind a name says that the room is still wanted."""
    sketch = ROOT.parent / "shared" / "DESIGN.md"
    if not sketch.is_file():
        pytest.skip("needs the sketch of ../shared, which is not part of the project")
    rooms = sketch.read_text("utf-8").split("\nkraq_dspy/\n")[1].split("\n```")[0]
    named = [
        name for line in rooms.splitlines() for name in re.findall(r"^  (\w+(?:/|\.py))(?!\*)|  (\w+\.py|_\w+/)", line)
    ]
    names = {first or second for first, second in named}
    assert {"signatures/", "retrievers/", "indexing/", "settings.py", "_internal/"} <= names
    names = {"testset/" if name == "exam/" else name for name in names}  # what the sketch calls an exam is a test set
    assert [name for name in sorted(names) if not (PACKAGE / name).exists()] == []
