"""The package holds no more than `budget.toml` allows: tokens, files and patterns, room by room."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def budget() -> ModuleType:
    spec = importlib.util.spec_from_file_location("budget", ROOT / "scripts" / "budget.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["budget"] = script  # its dataclasses look there for their module
    spec.loader.exec_module(script)
    return script


def test_no_room_holds_more_than_it_may(budget: ModuleType) -> None:
    now = budget.sources()
    over = budget.excesses(budget.measured(now), budget.read_budget(budget.BUDGET.read_text("utf-8")))
    additions = budget.largest_additions(budget.sources_before(), now) if over else []
    assert over == [], "\n".join(["Largest additions:", *additions, "See CONTRIBUTING.md, The budget"])


def test_layout_comments_and_docstrings_cost_nothing(budget: ModuleType) -> None:
    text = '"""A module."""\n\nimport re  # for numbers\n\n\ndef f(\n    x: str,\n) -> None:\n    """Do it."""\n'
    pattern = '    re.compile("[0-9]")\n'
    assert budget.size_of(text) == budget.Size(tokens=13, files=1, patterns=0)
    assert budget.size_of(text + pattern) == budget.Size(tokens=19, files=1, patterns=1)


def test_what_is_over_names_its_room_and_the_largest_additions_to_it(budget: ModuleType) -> None:
    before = {"eval/gate.py": "def f():\n    return 1\n", "errors.py": "x = 1\n"}
    now = {
        "eval/deep/gate.py": "def f():\n    return 1 + 1\n",
        "errors.py": "x = 1\ny = 2 + 2\n",
        "embedded/reading/parse.py": "class Parse:\n    def run(self):\n        return [1, 2, 3, 4]\n",
    }
    rooms = budget.measured(now)
    assert rooms["root"].tokens == 8
    assert rooms["whole"].files == 3
    assert budget.excesses(rooms, {**rooms, "eval": budget.Size(5, 0, 0)}) == [
        "eval: 1 files, 0 allowed",
        "eval: 9 tokens, 5 allowed",
    ]
    assert budget.excesses(rooms, {"whole": rooms["whole"], "root": rooms["root"], "eval": rooms["eval"]}) == [
        "embedded has no ceiling in budget.toml"
    ]
    assert budget.largest_additions(before, now) == [
        "parse.py Parse.run: +16 tokens",
        "errors.py outside functions: +5 tokens",
        "parse.py outside functions: +3 tokens",
    ]


def test_ceilings_are_lowered_and_never_raised(budget: ModuleType) -> None:
    text = (
        "# kept\n[whole]\nthousand_tokens = 9.0\nfiles = 2\npatterns = 5\n\n"
        "[eval]\n# for scores\nthousand_tokens = 5.0  # kept\nfiles = 1\npatterns = 5\n\n"
        "[gone]\nthousand_tokens = 1.0\nfiles = 1\npatterns = 0\n"
    )
    rooms = {"whole": budget.Size(8030, 3, 4), "eval": budget.Size(4000, 3, 4), "new": budget.Size(1, 1, 0)}
    assert budget.lowered(text, rooms) == (
        "# kept\n[whole]\nthousand_tokens = 8.4\nfiles = 2\npatterns = 4\n\n"
        "[eval]\n# for scores\nthousand_tokens = 4.3  # kept\nfiles = 1\npatterns = 4\n\n"
    )
