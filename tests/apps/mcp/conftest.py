"""Makes an index of three documents about people, once."""

import shutil
from pathlib import Path

import pytest

from kraq_dspy.records import Document
from tests.kept import kept_index

PASSAGES = {
    "Ada Lovelace": "Ada Lovelace was a mathematician. Ada Lovelace worked with Charles Babbage in London.",
    "Lord Byron": "Lord Byron was a poet. Lord Byron was the father of Ada Lovelace. Lord Byron wrote Don Juan.",
    "Charles Babbage": "Charles Babbage designed the Analytical Engine. "
    + " ".join(f"In {year} Charles Babbage lived in London." for year in range(1800, 1870)),
}


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mcp") / "people.kraq"
    kept_index([Document(f"notes/{title}.txt", title, text) for title, text in PASSAGES.items()], out)
    return out


@pytest.fixture
def people_elsewhere(people: Path, tmp_path: Path) -> Path:
    """A copy of its own, which a test may change."""
    return Path(shutil.copytree(people, tmp_path / "people.kraq"))
