"""Runs the tutorials and keeps what they show: `python scripts/run_tutorials.py [NOTEBOOK ...]`, some minutes.

The site shows the notebooks with these outputs. What differs from run to run (bars, warnings, numbers of cells) is not
kept.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
_WIDGET = "application/vnd.jupyter.widget-view+json"


def run(notebook: Path) -> None:
    """Run a notebook in an empty folder and write it back with its outputs. The cell that installs is passed over."""
    book = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        nbclient.NotebookClient(book, timeout=1800, kernel_name="python3", resources=where).execute()

    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if _is_kept(output)]
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output.execution_count = None
    book.metadata.pop("widgets", None)
    nbformat.write(book, notebook)


def _is_kept(output: Any) -> bool:
    if output.output_type == "stream":
        return bool(output.name == "stdout")
    return _WIDGET not in output.get("data", {})


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        run(path)
        print(path.name)
