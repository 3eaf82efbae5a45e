"""The tables of programs, of retrievers and of steps say what the code declares."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "readme_tables.py"


def test_the_tables_are_those_of_the_declarations() -> None:
    spec = importlib.util.spec_from_file_location("readme_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for page, text in script.written().items():
        assert page.read_text("utf-8") == text, "run: python scripts/readme_tables.py"
    assert "| `efficient` | 10 | `EfficientSpeculativeRAG` |" in script.PROGRAMS_PAGE.read_text("utf-8")
    assert "| gleaning | `FindMissedElements` | `SingleStep` |" in script.STEPS_PAGE.read_text("utf-8")
    with pytest.raises(ValueError, match="expected it once"):
        script.with_block("no markers", "programs", "")
