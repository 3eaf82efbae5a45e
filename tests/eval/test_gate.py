"""A run is judged by its means, and against another run by the paired interval; exit code 3 says that it is worse."""

import json
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import testing
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import evaluate
from kraq_dspy.eval.evaluation import state_of
from kraq_dspy.eval.gate import read_thresholds, under_checks, worse_checks
from kraq_dspy.eval.reports.comparing import compare_runs
from kraq_dspy.eval.reports.grids import changed_questions, unpaired_questions
from kraq_dspy.indexing import add_documents
from kraq_dspy.records import Chunk, Document, Entity, Hit, Question, Relationship, Summary
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.kept import kept_index

ROWS = [
    {"id": f"q{number}", "question": f"Question {number}", "answer": "x", "supporting_ids": [f"d{number}"]}
    for number in range(60)
]


def finding(n_found: int, *, fails_at: int | None = None):  # type: ignore[no-untyped-def]
    """A retriever that finds the documents of the first `n_found` questions, and breaks at one of them."""

    def find(question: str, k: int) -> list[Hit]:
        number = int(question.split()[1])
        if number == fails_at:
            raise RuntimeError("broken")
        name = f"d{number}" if number < n_found else "nothing"
        return [Hit(Chunk(name, name, 0, 0, 1, "x", 1), 1.0, question)]

    return find


def run_at(folder: Path, n_found: int, **options: int) -> Path:
    evaluate({"find": finding(n_found, **options)}, ROWS, ["recall@5"], out=folder)
    return folder


def test_a_mean_is_judged_by_its_number_and_a_failed_question_counts_as_nothing() -> None:
    run = evaluate({"find": finding(54)}, ROWS, ["recall@5"]).summary
    broken = evaluate({"find": finding(60, fails_at=3)}, ROWS, ["recall@5"]).summary

    assert [check.passed for check in under_checks(run, {"recall@5": 0.9})] == [True]
    [check] = under_checks(run, {"recall@5": 0.95})
    assert (check.passed, check.text) == (False, "recall@5 of find is 0.900, below 0.95")
    [failed] = under_checks(broken, {"recall@5": 0.99})
    assert not failed.passed
    assert "(1 question failed)" in failed.text


def test_a_loss_that_chance_does_not_explain_is_worse_and_a_smaller_one_is_not(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", 58)

    [far] = worse_checks(base, run_at(tmp_path / "far", 48))
    [near] = worse_checks(base, run_at(tmp_path / "near", 57))
    [better] = worse_checks(base, run_at(tmp_path / "better", 60))

    assert (far.passed, near.passed, better.passed) == (False, True, True)
    assert far.text.startswith("recall@5 of find is worse than before: -0.167 [")


def test_questions_that_fail_now_are_worse_whatever_the_others_score(tmp_path: Path) -> None:
    checks = worse_checks(run_at(tmp_path / "base", 58), run_at(tmp_path / "now", 60, fails_at=2))

    assert [(check.metric, check.passed) for check in checks] == [("recall@5", True), ("failed", False)]


def test_without_a_metric_recall_decides_before_others_that_both_runs_have(tmp_path: Path) -> None:
    for name, n_found in (("base", 58), ("now", 48)):
        evaluate({"find": finding(n_found)}, ROWS, ["mrr@5", "recall@5"], out=tmp_path / name)

    [check] = worse_checks(tmp_path / "base", tmp_path / "now")
    [named] = worse_checks(tmp_path / "base", tmp_path / "now", metrics=["mrr@5"])

    assert (check.metric, named.metric) == ("recall@5", "mrr@5")


def test_only_questions_of_both_runs_count(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", 58)
    more = [*ROWS, {"id": "new", "question": "Question 99", "answer": "x", "supporting_ids": ["d99"]}]
    evaluate({"find": finding(58)}, more, ["recall@5"], out=tmp_path / "more")

    [check] = worse_checks(base, tmp_path / "more")

    assert check.passed
    assert check.text.endswith("60 questions (1 only now)")


@pytest.mark.parametrize("ids", ["none", "lines"])
def test_a_question_on_top_of_the_file_moves_no_pair(tmp_path: Path, ids: str) -> None:
    asked = [{"question": f"Question {number}", "supporting_ids": [f"d{number}"]} for number in range(60)]
    more = [{"question": "Question 99", "supporting_ids": ["d99"]}, *asked]
    for rows in (asked, more) if ids == "lines" else ():
        for number, row in enumerate(list(rows)):
            rows[number] = {**row, "id": str(number)}
    evaluate({"find": finding(30)}, asked, ["recall@5"], out=tmp_path / "base")
    evaluate({"find": finding(30)}, more, ["recall@5"], out=tmp_path / "more")

    [check] = worse_checks(tmp_path / "base", tmp_path / "more")
    [run] = compare_runs(tmp_path / "base", tmp_path / "more")

    assert check.text.endswith("+0.000 [-0.045, +0.045], 60 questions (1 only now)")
    assert changed_questions(run) is None
    assert unpaired_questions(run).rows == (("Question 99", "second"),)  # type: ignore[union-attr]


def test_an_edited_question_is_another_question_whatever_its_id(tmp_path: Path) -> None:
    rows = [{"id": f"mine-{each['id']}", **{k: v for k, v in each.items() if k != "id"}} for each in ROWS]
    evaluate({"find": finding(58)}, rows, ["recall@5"], out=tmp_path / "base")
    edited = [{**rows[0], "question": "Question 0, please?"}, *rows[1:]]
    evaluate({"find": lambda question, k: finding(58)(question.replace(",", ""), k)}, edited, ["recall@5"],
             out=tmp_path / "now")  # fmt: skip

    [check] = worse_checks(tmp_path / "base", tmp_path / "now")

    assert "59 questions (1 only before, 1 only now)" in check.text


def test_a_loss_that_the_paired_test_does_not_tell_from_chance_is_not_worse(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", 60)

    [five] = worse_checks(base, run_at(tmp_path / "five", 55))  # p = 2 / 32
    [six] = worse_checks(base, run_at(tmp_path / "six", 54))  # p = 2 / 64

    assert (five.passed, six.passed) == (True, False)


def test_wrong_thresholds_and_metrics_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"--fail-under is 'recall'; expected METRIC=NUMBER"):
        read_thresholds(["recall"])
    run = evaluate({"find": finding(54)}, ROWS, ["recall@5"]).summary
    with pytest.raises(EvaluationError, match="no score of 'mrr' to be judged by; it has: recall@5"):
        under_checks(run, {"mrr": 0.5})


def test_a_metric_without_a_value_says_what_no_question_has() -> None:
    rows = [{"id": "q", "question": "Question 1", "answers": [], "supporting_ids": [], "answerable": False}]
    run = evaluate({"find": finding(54)}, rows, ["recall@5"]).summary
    with pytest.raises(EvaluationError, match="no question of the run names a document or a passage as evidence"):
        under_checks(run, {"recall@5": 0.9})


@pytest.mark.parametrize("word", ["recall@5=2", "recall@5=90", "exact_match=-0.1", "groundedness=1.01", "recall@5=nan"])
def test_thresholds_that_no_mean_could_reach_or_miss_are_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"least mean of .* is .*(lies between 0 and 1|expected a number)"):
        read_thresholds([word])
    metric, _, number = word.partition("=")
    with pytest.raises(ConfigError, match="least mean"):
        testing.assert_quality({"find": finding(58)}, ROWS, {metric: float(number)})


def test_a_metric_of_ones_own_may_have_any_range_and_shares_their_ends() -> None:
    words = ["points.py:stars=4.5", "points.py:loss=-3", "recall@5=1", "recall@10=0"]
    assert list(read_thresholds(words).values()) == [4.5, -3, 1, 0]
    with pytest.raises(ConfigError, match="expected a number"):
        read_thresholds(["points.py:stars=inf"])


def test_a_test_of_ones_own_fails_with_the_figure_and_passes_with_the_result(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", 58)

    result = testing.assert_quality({"find": finding(58)}, ROWS, {"recall@5": 0.9}, no_worse_than=base)
    assert result.mean("recall@5") > 0.9
    with pytest.raises(
        testing.QualityError, match=r"recall@5 of find is 0\.500, below 0\.9; recall@5 of find is worse"
    ):
        testing.assert_quality({"find": finding(30)}, ROWS, {"recall@5": 0.9}, no_worse_than=base)
    with pytest.raises(ConfigError, match="would be compared with itself"):
        testing.assert_quality({"find": finding(58)}, ROWS, no_worse_than=base, out=base)
    with pytest.raises(ValueError, match="Nothing is asked for"):
        testing.assert_quality({"find": finding(30)}, ROWS)


def test_the_command_ends_with_3_where_a_run_is_worse_and_with_1_where_there_is_none(
    kraq: WarmShell, tmp_path: Path
) -> None:
    texts = {"rhine": "The Rhine flows into the North Sea.", "ada": "Ada Lovelace wrote the first program."}
    index = tmp_path / "x.kraq"
    kept_index([Document(name, name.title(), text) for name, text in texts.items()], index)
    right, wrong = tmp_path / "right.jsonl", tmp_path / "wrong.jsonl"
    right.write_text('{"id": "q", "question": "Where does the Rhine flow?", "supporting_ids": ["rhine"]}\n', "utf-8")
    wrong.write_text('{"id": "q", "question": "Where does the Rhine flow?", "supporting_ids": ["ada"]}\n', "utf-8")

    def gate(questions: Path, *words: str) -> tuple[int, str, str]:
        run = kraq("eval", index, questions, "--retrieval-only", "--out", tmp_path / questions.stem, *words)
        return run.returncode, run.stdout, run.stderr

    good = gate(right, "--fail-under", "recall@1=.9", "--json")
    low = gate(wrong, "--fail-under", "recall@1=.9", "--json")
    none = gate(right, "--fail-if-worse", str(tmp_path / "nowhere"))
    mistyped = gate(right, "--fail-under", "recall@1")

    assert (good[0], low[0], none[0], mistyped[0]) == (0, 3, 1, 2)
    assert [check["passed"] for check in json.loads(good[1])["checks"]] == [True]
    assert json.loads(low[1])["checks"][0]["text"] == "recall@1 of adaptive is 0.000, below 0.9"
    assert "holds no run" in none[2]


def test_a_run_is_compared_with_another_folder_by_one_metric_and_never_continued_with_a_changed_index(
    kraq: WarmShell, tmp_path: Path
) -> None:
    index = tmp_path / "x.kraq"
    kept_index([Document("rhine", "Rhine", "The Rhine flows into the North Sea.")], index)
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "Where does the Rhine flow?", "supporting_ids": ["rhine"]}\n', "utf-8")

    def run(*words: str) -> tuple[int, str, str]:
        done = kraq("eval", index, questions, "--retrieval-only", "--json", *words, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    base = run("--out", "base")
    now = run("--out", "now", "--fail-under", "recall@10=.9", "--fail-if-worse", "base")
    itself = run("--out", "base", "--fail-if-worse", "base")
    by_name = [json.loads(run()[1])["files"] for _ in range(2)]

    assert (base[0], now[0], itself[0]) == (0, 0, 2)
    assert [check["metric"] for check in json.loads(now[1])["checks"]] == ["recall@10"] * 2
    assert "would be compared with itself" in " ".join(itself[2].split())
    assert by_name[0] == by_name[1]

    with Index.open(index, write=True) as written:
        written.update_manifest()  # a change that changes nothing, but the time
    assert run("--out", "now")[0] == 0

    add_documents(index, [Document("elbe", "Elbe", "The Elbe flows into the North Sea.")])
    changed = run("--out", "now")

    assert changed[0] == 1
    assert "index_fingerprint x.kraq" in " ".join(changed[2].split())
    assert json.loads(run()[1])["files"] != by_name[0]


def test_eval_report_and_comparison_print_one_shape(kraq: WarmShell, tmp_path: Path) -> None:
    base, now = run_at(tmp_path / "base", 58), run_at(tmp_path / "now", 50)

    one, two = kraq("eval", "report", base, "--json"), kraq("eval", "report", base, now, "--json")

    shapes = [set(json.loads(done.stdout)) for done in (one, two)]
    assert shapes == [{"title", "kind", "runs", "files", "checks"}] * 2


@pytest.mark.parametrize("kind", [Chunk, Entity, Relationship, Question, Summary])
def test_an_index_that_lost_a_record_is_another_state(tmp_path: Path, kind: type) -> None:
    kept_index([Document("ada", "Ada", "Ada Lovelace met Charles Babbage in London in 1833.")], tmp_path / "x.kraq")
    with Workspace.open(tmp_path / "x.kraq") as space:
        before = state_of(space)

    with Index.open(tmp_path / "x.kraq", write=True) as index:
        index.replace(kind, list(index.all(kind))[1:])

    with Workspace.open(tmp_path / "x.kraq") as space:
        assert state_of(space) != before


def halved(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as two halves, which take turns."""
    return [{**row, "half": ("made", "own")[number % 2]} for number, row in enumerate(rows)]


def missing(numbers: set[int]):  # type: ignore[no-untyped-def]
    """A retriever that finds the documents of all questions but these."""
    find = finding(10_000)
    return lambda question, k: [] if int(question.split()[1]) in numbers else find(question, k)


def test_a_run_over_two_halves_is_worse_only_if_both_say_so(tmp_path: Path) -> None:
    rows = halved(ROWS)
    for name, lost in {"base": set(), "made": set(range(0, 60, 2)), "both": set(range(0, 60, 3))}.items():
        evaluate({"find": missing(lost)}, rows, ["recall@5"], out=tmp_path / name)

    [of_made] = worse_checks(tmp_path / "base", tmp_path / "made")
    [of_both] = worse_checks(tmp_path / "base", tmp_path / "both")

    assert (of_made.passed, of_both.passed) == (True, False)
    assert "no worse than before (one half is sure, and the other does not agree): made -1.000 [" in of_made.text
    assert "worse than before (both halves): made -0.333 [" in of_both.text


def test_human_questions_decide_with_the_halves_on_the_command_line(kraq: WarmShell, tmp_path: Path) -> None:
    names = [f"{word}{number}" for number in range(8) for word in ("rhine", "ada", "bell", "mill", "inn")]
    kept_index([Document(name, name.title(), f"The {name} is old, says Ida.") for name in names], tmp_path / "x.kraq")
    rows = [{"question": f"What of the {name}?", "supporting_ids": [name]} for name in names]
    for file, lines in (("testset", halved(rows)), ("few", rows[:6]), ("plain", rows), ("two", rows[:2])):
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")

    def evaluated(testset: str, out: str, *more: str | Path):  # type: ignore[no-untyped-def]
        words = ("--retrieval-only", "-r", "dense", "-r", "bm25", "--k", "1", "--out", tmp_path / out)
        return kraq("eval", tmp_path / "x.kraq", tmp_path / f"{testset}.jsonl", *words, *more)

    few = ("--human", tmp_path / "few.jsonl")
    first = evaluated("testset", "run", *few, "--fail-under", "recall@1=.1")
    second = evaluated("testset", "now", *few, "--fail-if-worse", tmp_path / "run", "--json")
    without_halves = evaluated("plain", "plain", *few)
    too_few = evaluated("testset", "two", "--human", tmp_path / "two.jsonl")

    assert first.returncode == 0, first.stderr
    told = " ".join(first.stdout.split())
    assert "recall@1: decisions" in told
    assert "human, n=6" in told
    assert "recall@1: decisions" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "recall@1: decisions" in " ".join(kraq("eval", "report", tmp_path / "run").stdout.split())
    report = json.loads(second.stdout)
    assert [check["passed"] for check in report["checks"]] == [True, True]
    [decision] = report["runs"][0]["decisions"]["recall@1"]
    assert list(decision["differences"]) == ["made", "own", "human"]
    assert decision["differences"]["human"]["n"] == 6
    assert without_halves.returncode == too_few.returncode == 1
    assert "have 0 made rows" in " ".join(without_halves.stderr.split())
    assert "2 human questions" in " ".join(too_few.stderr.split())
