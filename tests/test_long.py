"""`tests/long.txt` lists tests that are there, and what it lists has the marker by which `make test` leaves it out."""

import ast
import os
from typing import cast

import pytest

from tests.conftest import LOADED_TO_COLLECT, LONG, ROOT, pytest_collection_modifyitems, worker_group


def test_each_line_names_a_test_that_is_there() -> None:
    """A line that names nothing would put a renamed test back into `make test` unseen."""
    files = {line.partition("::")[0] for line in LONG}
    there = {
        f"{file}::{statement.name}"
        for file in files
        for statement in ast.parse((ROOT / file).read_text("utf-8")).body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert sorted(LONG - there) == []


class Item:
    """What the hook needs of a collected test."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.path = ROOT / nodeid.partition("::")[0]
        self.marks: list[str] = []

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def test_all_examples_of_a_listed_test_are_marked_and_no_other_test() -> None:
    listed = min(LONG)
    items = [Item(listed), Item(f"{listed}[0]"), Item(f"{listed}_too"), Item("tests/test_long.py::test_x")]
    pytest_collection_modifyitems(cast("list[pytest.Item]", items))
    assert ["long" in item.marks for item in items] == [True, True, False, False]


@pytest.mark.parametrize("number", range(4))
def test_the_tests_of_a_file_share_a_worker(number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    base = tmp_path_factory.getbasetemp()
    seen = (base.parent if worker else base) / "workers-of-this-file"
    seen.mkdir(exist_ok=True)
    (seen / f"{worker}-{number}").touch()
    assert {each.name.partition("-")[0] for each in seen.iterdir()} == {worker}


def test_files_that_load_the_same_heavy_library_share_a_worker_and_no_others_do() -> None:
    torch = [worker_group(ROOT / "tests" / name) for name in ("finetune/test_training.py", "finetune/test_provider.py")]
    assert torch == ["torch", "torch"]
    assert worker_group(ROOT / "tests" / "apps" / "integrations" / "test_langchain.py") == "clients"
    assert worker_group(ROOT / "tests" / "conftest.py") != worker_group(ROOT / "tests" / "test_docs.py")


def test_what_takes_seconds_to_import_is_imported_by_the_tests_that_use_it() -> None:
    """Every worker imports all files of tests; `tests.lazily` puts a library's import off to its first use."""
    assert set() == LOADED_TO_COLLECT
