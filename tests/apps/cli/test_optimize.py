"""Runs `kraq optimize` as a shell user does."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import Document
from kraq_dspy.apps.cli import main
from kraq_dspy.optimize import save_state, state_of
from kraq_dspy.signatures import AnswerQuestion
from tests.conftest import WarmShell
from tests.kept import kept_index

Run = Callable[..., tuple[int, str, str]]
PEOPLE = ("Ada Lovelace", "Charles Babbage", "Lord Byron", "Mary Shelley", "Jane Austen", "John Keats")
PLACES = ("London", "Geneva", "Missolonghi", "Bath", "Rome", "Paris")


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("optimize")
    texts = [
        f"{person} lived in {town}. {person} met a friend there." for person, town in zip(PEOPLE, PLACES, strict=True)
    ]
    kept_index([Document(str(n), "", text) for n, text in enumerate(texts)], place / "people.kraq")
    rows = [
        {"question": f"Where did {person} {verb}?", "answers": [town]}
        for person, town in zip(PEOPLE, PLACES, strict=True)
        for verb in ("live", "meet a friend")
    ]
    lines(place / "dev.jsonl", rows)
    return place


@pytest.fixture
def within(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process, which is quicker: (exit code, standard output, standard error in one line)."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["kraq", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, " ".join(printed.err.split())

    return run


def test_a_program_is_optimized_saved_and_used(kraq: WarmShell, folder: Path) -> None:
    words = ("optimize", "combined", "--index", "people.kraq", "--dev", "dev.jsonl", "--out", "combined.json")
    done = kraq(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "6 learned from, 6 measured on" in done.stdout
    again = kraq(*words, "--json", cwd=folder)
    assert again.stderr == ""
    report = json.loads(again.stdout)
    assert report["usage"]["calls"] == 0  # the first run's answers are kept
    assert (report["n_train"], len(report["after"])) == (6, 6)
    assert any("cannot improve" in problem for problem in report["problems"])
    question_words = ("ask", "people.kraq", "Where did Jane Austen live?", "--optimized", "combined.json", "--json")
    assert json.loads(kraq(*question_words, cwd=folder).stdout)["answer"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("optimize", "combinde", "--dev", "dev.jsonl"), 2, "There is no step or program 'combinde'"),
        (("optimize", "combined", "--dev", "dev.jsonl"), 2, "needs an index: --index DIR"),
        (("optimize", "answering", "--dev", "dev.jsonl"), 1, "the field 'passages' is missing"),
        (("optimize", "answering", "--dev", "none.jsonl"), 1, "Cannot read the dev set"),
        (("optimize", "judging", "--dev", "dev.jsonl"), 1, "the field 'right' is missing"),
        (("optimize", "question-generation", "--dev", "dev.jsonl"), 1, "unknown field 'answers'"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_the_way_out(
    within: Run, folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    ended, out, err = within(*words, "--out", "never.json")
    assert (ended, out) == (code, "")
    assert message in err
    assert not (folder / "never.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("optimize", "combined"), "Missing: --dev FILE (or --index DIR); --out FILE."),
        (("finetune", "pairs"), "Missing: --dataset NAME, with its folder's parent in --data; --out FILE."),
    ],
)
def test_all_that_is_missing_is_named_at_once(within: Run, words: tuple[str, ...], message: str) -> None:
    code, _, err = within(*words)
    assert code == 2
    assert message in err


def test_a_budget_ends_it_and_the_message_says_how_to_go_on(within: Run) -> None:
    words = ("--index", "people.kraq", "--dev", "dev.jsonl", "--out", "cheap.json", "--budget-calls", "3")
    code, _, err = within("optimize", "combined", *words)
    assert code == 1
    assert "Stopped after" in err  # how many were answered then depends on the threads
    assert "--budget-calls = 3" in err


def test_a_state_that_does_not_fit_is_refused_by_ask(within: Run, folder: Path) -> None:
    state = state_of(dspy.Predict(AnswerQuestion), {})
    save_state(state, folder / "older.json")
    body = json.loads((folder / "older.json").read_text())
    body["predictors"]["self"]["signature"]["outputs"] = {"older": "str"}
    (folder / "older.json").write_text(json.dumps(body))
    code, _, err = within("ask", "people.kraq", "Where?", "--optimized", "older.json")
    assert code == 1
    assert "older.json was made for another version of AnswerQuestion" in err
