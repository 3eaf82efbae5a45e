"""The first commands print over a small corpus what the golden files hold; `make golden-check` runs all of them."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import WarmShell

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden", ROOT / "scripts" / "golden.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_first_commands_say_what_they_said(golden: ModuleType, kraq: WarmShell, tmp_path: Path) -> None:
    cases = golden.CASES["orchids"]
    first = dict(list(cases.items())[: list(cases).index("precompute")])
    recording = golden.recorded("orchids", kraq, tmp_path, first)
    differences = list(golden.differences("orchids", recording, first))
    assert differences == [], "\n".join(
        [*differences, "Meant? Run `make golden`, and say in the commit which lines and why."]
    )


def test_each_corpus_has_both_layers_of_the_cases_that_are_declared(golden: ModuleType) -> None:
    for corpus in golden.CORPORA:
        rows = golden.read_rows(golden.GOLDEN / f"{corpus}.exact.jsonl")
        assert list(dict.fromkeys(case for case, _, _ in rows)) == list(golden.CASES[corpus])
        assert golden.read_rows(golden.GOLDEN / f"{corpus}.wording.jsonl")


def test_a_file_names_no_folder_no_time_and_no_hash(golden: ModuleType) -> None:
    for file in golden.GOLDEN.glob("*.jsonl"):
        text = file.read_text("utf-8")
        assert "/tmp/" not in text
        assert str(ROOT) not in text
        assert golden.re.search(r"\b[0-9a-f]{32}\b", text) is None, file.name


def test_scores_may_round_otherwise_and_nothing_else_may_differ(golden: ModuleType) -> None:
    line = ["ask", "/hits/0", {"score": 0.5, "chunk": "a#0", "rank": 1}]
    assert golden.same(line, ["ask", "/hits/0", {"score": 0.507, "chunk": "a#0", "rank": 1}])
    for value in ({"score": 0.52, "chunk": "a#0", "rank": 1}, {"score": 0.5, "chunk": "b#0", "rank": 1}):
        assert not golden.same(line, ["ask", "/hits/0", value])
    assert not golden.same(line, ["ask", "/hits/0", {"score": 0.5, "chunk": "a#0"}])
    assert not golden.same([True], [False])


def test_a_long_text_is_cut_and_a_change_behind_the_cut_is_seen(golden: ModuleType) -> None:
    first, second = golden.shortened("x" * 300 + "a"), golden.shortened("x" * 300 + "b")
    assert first != second
    assert first[: golden.LONGEST] == "x" * golden.LONGEST
    assert golden.shortened("short") == "short"
