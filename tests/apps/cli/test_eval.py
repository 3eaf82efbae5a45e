"""Runs `kraq eval` and `kraq eval report` as a shell user does."""

import json
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.apps.cli.commands import TABLES
from kraq_dspy.asset.store.index import Index
from kraq_dspy.papers.catalogue import papers_tables
from kraq_dspy.records import Document
from tests.conftest import WarmShell

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "hotpotqa-mini"
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
    done = kraq("bench", "mine.toml", "--data", EXAMPLE, "--tokens", "2500", "--limit", "2", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_table_of_ones_own_is_run_and_reported_as_json_and_nothing_else(run: tuple[Path, Any]) -> None:
    folder, output = run
    [only] = output["runs"]
    assert only["header"]["dataset"] == "hotpotqa-mini"
    assert [system["name"] for system in only["systems"]] == ["traditional", "combined"]
    assert [system["n"] for system in only["systems"]] == [2, 2]
    assert output["files"] == ["runs/mine/report.html"]
    assert (folder / "runs" / "mine" / "hotpotqa-mini" / "rows.jsonl").exists()


def test_the_report_is_remade_from_the_rows(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    (folder / "runs" / "mine" / "report.html").unlink()
    done = kraq("eval", "report", "runs/mine", "--baseline", "combined", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Difference from combined" in done.stdout
    assert (folder / "runs" / "mine" / "report.html").exists()


QUESTIONS = """query,expected
"Were Scott Derrickson and Ed Wood of the same nationality?",yes
"Which magazine was started first?",
"""


def test_an_index_is_asked_the_questions_of_a_file_as_it_is(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    [index] = (folder / "runs" / "indexes").iterdir()
    (folder / "q.csv").write_text(QUESTIONS)
    (folder / "mine.py").write_text("def short(example, prediction):\n    return len(prediction.answer) < 40\n")
    words = ["-m", "token_f1", "-m", "mine.py:short", "-m", "grounded", "--json"]
    done = kraq("eval", index, "q.csv", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    [summary] = json.loads(done.stdout)["runs"]
    [system] = summary["systems"]
    about = summary["header"]["extra"]["table"]["systems"]["traditional"]["about"]
    assert (about["program"], about["retriever"], about["model"]) == ("traditional", "adaptive", "embedded")
    assert system["cells"]["token_f1"]["n_undefined"] == 1  # the question without an answer
    assert system["cells"]["grounded"]["n_undefined"] == 0
    assert (folder / "runs" / Path(json.loads(done.stdout)["files"][0]).parent.name / "rows.jsonl").exists()


def test_a_run_of_which_every_row_failed_ends_with_1_and_is_asked_again_on_request(
    kraq: WarmShell, run: tuple[Path, Any]
) -> None:
    folder, _ = run
    [index] = (folder / "runs" / "indexes").iterdir()
    (folder / "failing.csv").write_text(QUESTIONS)
    (folder / "late.py").write_text("def late(example, prediction):\n    raise RuntimeError('too late.')\n")
    words: list[str | Path] = ["eval", index, "failing.csv", "-m", "late.py:late", "--out", "failed"]
    for options in ([], ["--fail-under", "late.py:late=.5"]):
        done = kraq(*words, *options, cwd=folder)
        assert done.returncode == 1
        said = " ".join(done.stderr.split())
        assert "Every row of 'traditional' on " in said
        assert "failed (2 of 2); most often: RuntimeError: too late. Fix that" in said
        assert (folder / "failed" / "report.html").exists()

    (folder / "late.py").write_text("def late(example, prediction):\n    return 1.0\n")
    assert kraq(*words, cwd=folder).returncode == 1  # rows are kept
    assert kraq(*words, "--retry-failed", cwd=folder).returncode == 0


def test_two_runs_over_one_index_are_compared(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    [index] = (folder / "runs" / "indexes").iterdir()
    for name in ("dense", "bm25"):
        words = ["--retrieval-only", "-r", name, "--out", name, "--limit", "3"]
        done = kraq("eval", index, EXAMPLE / "questions.jsonl", *words, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "recall@10" in done.stdout
    beside = kraq("eval", "report", "dense", "bm25", cwd=folder)
    assert beside.returncode == 0, beside.stderr
    assert "Difference from" in beside.stdout


def test_the_papers_tables_fit_a_narrow_terminal(kraq: WarmShell, tmp_path: Path) -> None:
    done = kraq("bench", "list", cwd=tmp_path)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_help_names_the_tables(kraq: WarmShell, tmp_path: Path) -> None:
    done = kraq("bench", "--help", cwd=tmp_path)
    words = done.stdout.split()
    for name in (*TABLES, "diversity", "list"):
        assert name in words or f"{name}," in words or f"{name}." in words


def test_the_papers_tables_are_listed_with_the_command_that_runs_each(kraq: WarmShell, tmp_path: Path) -> None:
    done = kraq("bench", "list", "--json", cwd=tmp_path)
    listed = json.loads(done.stdout)
    assert [each["id"] for each in listed] == list(papers_tables())
    assert {each["command"].split()[0] for each in listed if each["command"]} == {"kraq"}
    assert {each["report"] for each in listed} == {None}
    assert "0 of 5 have a report" in kraq("bench", "list", "--paper", "k2rag", cwd=tmp_path).stdout


def test_a_table_of_a_paper_is_run_by_its_id_and_then_listed_with_its_report(kraq: WarmShell, tmp_path: Path) -> None:
    words: list[str | Path] = ["--data", EXAMPLE, "--tokens", "2500", "--limit", "1"]
    done = kraq("bench", "kraq-2", *words, "--judge", "none", "--metric", "recall", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert run["header"]["extra"]["table"]["metrics"] == ["paper_match", "recall"]
    listed = json.loads(kraq("bench", "list", "--json", cwd=tmp_path).stdout)
    assert [each["id"] for each in listed if each["report"]] == ["kraq-2"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["eval", "nonsense"], 2, "nonsense"),
        (["bench", "nonsense"], 2, "There is no table 'nonsense'"),
        (["bench", "none.toml"], 2, "There is no table of systems"),
        (["bench", "combined", "--data", "nowhere"], 1, "kraq bench fetch"),
        (["bench", "combined", "--baseline", "nobody"], 2, "there are: traditional"),
        (["bench", "combined", "--judge", "jury"], 2, "there are: none, binary, rubric"),
        (["bench", "combined", "--lm", "m.gguf"], 2, "--lm gguf/m.gguf"),
        (["bench", "kraq-fig2"], 2, "Its command: kraq finetune generator"),
        (["bench", "list", "--paper", "bert"], 2, "No paper is called bert"),
        (["eval", "none.kraq", "q.csv"], 1, "There is no file 'q.csv'"),
        (["eval", "report", "nowhere"], 1, "holds no run"),
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


def test_the_evidence_of_questions_may_stand_in_qrels(kraq: WarmShell, run: tuple[Path, Any]) -> None:
    folder, _ = run
    [index] = (folder / "runs" / "indexes").iterdir()
    with Index.open(index) as opened:
        document = next(opened.all(Document))
    (folder / "asked.jsonl").write_text(json.dumps({"id": "q1", "question": document.text[:200]}))
    (folder / "asked.qrels").write_text(f"q1\t0\t{document.id}\t1\n")
    words = ["--qrels", "asked.qrels", "--retrieval-only", "-r", "bm25", "--json"]
    done = kraq("eval", index, "asked.jsonl", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    [system] = json.loads(done.stdout)["runs"][0]["systems"]
    assert system["cells"]["recall@10"]["interval"]["estimate"] == 1.0
