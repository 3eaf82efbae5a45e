"""`kraq eval` and `kraq report` as a shell user meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WarmShell

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini"
TABLE = """
title = "Two programs"
kind = "answers"
baseline = "traditional"
metrics = ["exact_match", "recall"]

[[systems]]
name = "traditional"
program = "traditional"
k = 4

[[systems]]
name = "combined"
program = "combined"
k = 4
"""


@pytest.fixture(scope="module")
def run(kraq: WarmShell, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder in which a table of one's own was run, and what the command said."""
    folder = tmp_path_factory.mktemp("eval")
    (folder / "mine.toml").write_text(TABLE)
    done = kraq("eval", "mine.toml", "--data", EXAMPLE, "--tokens", "2500", "--limit", "2", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_table_of_ones_own_is_run_and_reported_as_json_and_nothing_else(run: tuple[Path, Any]) -> None:
    folder, said = run
    [only] = said["summary"]["runs"]
    assert only["header"]["dataset"] == "hotpotqa-mini"
    assert [system["name"] for system in only["systems"]] == ["traditional", "combined"]
    assert [system["n"] for system in only["systems"]] == [2, 2]
    assert said["files"] == ["runs/mine/report.md", "runs/mine/report.html"]
    assert (folder / "runs" / "mine" / "hotpotqa-mini" / "rows.jsonl").exists()


def test_the_report_is_remade_from_the_rows(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    (folder / "runs" / "mine" / "report.html").unlink()
    done = kraq("report", "runs/mine", "--baseline", "combined", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Difference from combined" in done.stdout
    assert (folder / "runs" / "mine" / "report.html").exists()


def test_coverage_of_the_index_that_was_built(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    [index] = (folder / "runs" / "indexes").iterdir()
    done = kraq("eval", "coverage", index, "--budget", "3", "--out", "cov", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["coverage"]
    assert len(found["chosen"]) == 3
    assert (folder / "cov" / "coverage.html").exists()


def test_judges_are_calibrated_on_gold_answers(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    done = kraq("eval", "judges", "--data", EXAMPLE, "-d", "hotpotqa-mini", "--limit", "12", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Cohen's kappa" in done.stdout


def test_help_names_the_tables(kraq: WarmShell, tmp_path: Path) -> None:
    done = kraq("eval", "--help", cwd=tmp_path)
    for name in ("questions", "combined", "speculative", "retrievers", "judges", "coverage", "TABLE.toml"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["eval", "nonsense"], 2, "nonsense"),
        (["eval", "none.toml"], 2, "Cannot read the table"),
        (["eval", "combined", "--data", "nowhere"], 1, "kraq_dspy.eval.datasets fetch"),
        (["eval", "combined", "--baseline", "nobody"], 2, "there are: traditional"),
        (["eval", "judges"], 2, "--dataset"),
        (["report", "nowhere"], 1, "holds no run"),
    ],
)
def test_bad_input_gets_a_message_and_an_exit_code(
    kraq: WarmShell, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    done = kraq(*words, cwd=tmp_path)
    assert done.returncode == code
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
