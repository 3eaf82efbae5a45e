"""Finds the tests of each module: in the mirrored place, or where tests/where.toml says.

`kraq_dspy/eval/gate.py` is tested in `tests/eval/test_gate.py`. A module of more than 60 lines whose tests have another
name stands in the list, so that a newcomer need not search.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTED: dict[str, str] = tomllib.loads((ROOT / "tests" / "where.toml").read_text("utf-8"))
LONG = 60


def has_mirrored_tests(module: Path) -> bool:
    place = ROOT / "tests" / module.relative_to("kraq_dspy").parent
    return (place / f"test_{module.stem.lstrip('_')}.py").is_file()


def long_modules() -> list[Path]:
    modules = (ROOT / "kraq_dspy").rglob("*.py")
    long = (path for path in modules if path.name != "__init__.py" and path.read_text("utf-8").count("\n") > LONG)
    return [path.relative_to(ROOT) for path in long]


def test_each_long_module_has_tests_in_the_mirrored_place_or_a_line_that_says_where() -> None:
    homeless = [str(module) for module in long_modules() if not has_mirrored_tests(module)]
    assert sorted(set(homeless) - set(LISTED)) == [], "add a line to tests/where.toml"


def test_the_list_holds_no_module_that_is_gone_or_has_mirrored_tests() -> None:
    stale = [name for name in LISTED if not (ROOT / name).is_file() or has_mirrored_tests(Path(name))]
    assert stale == []


def test_the_list_names_files_that_hold_tests() -> None:
    empty = [place for place in set(LISTED.values()) if "def test_" not in (ROOT / place).read_text("utf-8")]
    assert empty == []
