"""The tutorials of docs/ run from their first cell to their last; `make docs-test` runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


def test_there_are_five_and_their_page_names_each() -> None:
    page = (ROOT / "docs" / "tutorials" / "index.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 5
    assert [notebook.name for notebook in NOTEBOOKS if f"({notebook.name})" not in page] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_its_title_and_with_what_it_needs_and_holds_what_it_shows(notebook: Path) -> None:
    first, install, *rest = cells(notebook)
    assert "".join(first["source"]).startswith("# ")
    assert "".join(install["source"]).startswith("%pip install")
    shown = [output for cell in rest if cell["cell_type"] == "code" for output in cell["outputs"]]
    assert shown, "run: python scripts/run_tutorials.py"
    assert [output for output in shown if output["output_type"] == "error"] == []
    assert str(Path.home()) not in json.dumps(shown)
    assert "/tmp/" not in json.dumps(shown)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    import nbclient
    import nbformat

    book = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", resources=where).execute()
