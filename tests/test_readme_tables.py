"""The tables of programs and retrievers say what the specs say."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "readme_tables.py"


def test_the_tables_of_the_guide_are_those_of_the_specs() -> None:
    spec = importlib.util.spec_from_file_location("readme_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for page in script.PAGES:
        text = page.read_text("utf-8")
        assert script.with_tables(text) == text, "run: python scripts/readme_tables.py"
        assert "| `efficient` | `EfficientSpeculativeRAG` |" in text
    with pytest.raises(ValueError, match="expected it once"):
        script.with_tables("no markers")
