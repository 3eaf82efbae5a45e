"""The dependency direction of docs/architecture.md, read from the imports themselves."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "kraq_dspy"

# A room may import itself and every room named before it.
ORDER = [
    {"records"},
    {"errors"},
    {"lazy"},
    {"validation"},
    {"concurrency"},
    {"dspy_internals"},
    {"ports"},
    {"config"},
    {"files"},
    {"backoff"},
    {"corpus"},
    {"graph"},
    {"embedders"},
    {"stores"},
    {"lms"},
    {"signatures"},
    {"steps"},
    {"programs"},
    {"catalogue"},
    {"indexing"},
    {"prepare"},
    {"workspace"},
    {"eval"},
    {"optimize"},
    {"finetune"},
    {"cli"},
]
LAYER = {room: number for number, rooms in enumerate(ORDER) for room in rooms}


def imports() -> list[tuple[str, str, str]]:
    """(file, room, room that it imports), for every import of the package by the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name.startswith("kraq_dspy."):
                    found.append(("/".join(parts), parts[0], name.split(".")[1]))
    return found


def test_every_room_has_a_place_in_the_order() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__"} <= set(LAYER)


def test_no_room_imports_one_that_stands_on_it() -> None:
    upward = [(file, target) for file, room, target in imports() if LAYER[target] > LAYER[room]]
    assert upward == []


def test_programs_and_metrics_know_stores_encoders_and_models_only_as_ports() -> None:
    concrete = {"stores", "embedders", "lms"}
    allowed = {
        "programs/speculative",  # scoring reads token log-probabilities, which the model room assigns to fields
        "programs/retrievers/in_memory",  # plain texts are embedded with the packaged encoder where none is given
    }
    known = [
        (file, target)
        for file, room, target in imports()
        if room == "programs" and target in concrete and not any(file.startswith(place) for place in allowed)
    ]
    assert known == []


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'cdlib', 'litellm', 'sentence_transformers', 'sklearn', 'dspy'}"
    command = f"import sys, kraq_dspy; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_and_asking_pull_in_neither_torch_nor_litellm_before_they_are_needed() -> None:
    command = "import sys, kraq_dspy; kraq_dspy.Workspace; kraq_dspy.build_index; print(sorted({0} & set(sys.modules)))"
    heavy = "{'torch', 'transformers', 'cdlib', 'litellm', 'sklearn', 'igraph', 'matplotlib', 'pyarrow'}"
    done = subprocess.run([sys.executable, "-c", command.format(heavy)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_sql_stands_in_the_stores_alone() -> None:
    speaks = re.compile(r"sqlite3|\.execute(many|script)?\(|\b(SELECT|INSERT INTO|DELETE FROM|PRAGMA)\b")
    places = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if speaks.search(path.read_text("utf-8"))]
    assert {path.parts[0] for path in places} == {"stores"}
