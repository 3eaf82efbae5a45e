"""Leads an index through its life from the shell: estimate, limits, add, remove, resume, check."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WarmShell


def as_json(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "ada.txt").write_text("Ada Lovelace worked with Charles Babbage. Charles Babbage lived in London.")
    (folder / "byron.txt").write_text("Lord Byron was the father of Ada Lovelace. Lord Byron died in Missolonghi.")
    return folder


def test_a_stopped_index_is_resumed_grows_and_shrinks_and_stays_whole(
    kraq: WarmShell, corpus: Path, tmp_path: Path
) -> None:
    path = tmp_path / "i.kraq"
    stopped = kraq("index", corpus, "--out", path, "--max-calls", "3")
    assert stopped.returncode == 1
    assert "max_calls = 3" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    unfinished = as_json(kraq("check", path, "--json"), code=1)
    assert "The build is not finished" in [problem["what"] for problem in unfinished["problems"]]

    resumed = as_json(kraq("index", path, "--json"))
    assert resumed["counts"]["extractions"] == 2

    (tmp_path / "turing.txt").write_text("Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe.")
    added = as_json(kraq("update", "--add", path, tmp_path / "turing.txt", "--json"))
    assert added["counts"]["documents"] == 3
    assert added["usage"]["extract"]["calls"] == 2

    removed = as_json(kraq("remove", path, "turing.txt", "--json"))
    assert removed["counts"]["documents"] == 2
    assert removed["counts"]["entities"] == resumed["counts"]["entities"]
    whole = kraq("check", path)
    assert whole.returncode == 0
    assert "is whole" in whole.stdout

    again = kraq("remove", path, "turing.txt")
    assert again.returncode == 0
    assert "'turing.txt' had been removed" in again.stderr
    assert as_json(kraq("remove", path, "turing.txt", "--json"))["documents"]["removed"] == 0
    unknown = kraq("remove", path, "nowhere.txt")
    assert unknown.returncode == 1
    assert "no document 'nowhere.txt'" in unknown.stderr

    missing = kraq("update", "--add", path, tmp_path / "turing.txt", tmp_path / "nowhere.txt")
    assert missing.returncode == 1
    assert "There is no corpus at" in missing.stderr
    (tmp_path / "empty").mkdir()
    empty = kraq("update", "--add", path, tmp_path / "turing.txt", tmp_path / "empty")
    assert empty.returncode == 1
    assert "holds no files" in empty.stderr
    updated = kraq("update", path, tmp_path / "empty")
    assert updated.returncode == 1
    assert "holds no files" in updated.stderr
    status = as_json(kraq("status", path, "--json"))
    assert (status["change"], status["counts"]["documents"]) == (None, 2)


def test_the_calls_of_an_estimate_that_are_exact_are_what_the_index_then_asks(
    kraq: WarmShell, corpus: Path, tmp_path: Path
) -> None:
    estimate = as_json(kraq("index", "--dry-run", corpus, "--json"))
    report = as_json(kraq("index", corpus, "--out", tmp_path / "i.kraq", "--json"))
    assert estimate["estimate"]["stages"][0]["expected"]["calls"] == report["usage"]["extract"]["calls"] > 0
    shown = kraq("index", "--dry-run", corpus, "--lm", "openai/gpt-4o-mini")
    assert f"{corpus}: 2 documents, 2 passages, " in shown.stdout
    assert "together" in shown.stdout
    assert "For money" not in shown.stdout  # LiteLLM's list has the price
    assert "< 0.01" in shown.stdout  # what costs something never reads as nothing


def test_a_change_says_what_failed_in_it_and_counts_what_had_failed_before(kraq: WarmShell, tmp_path: Path) -> None:
    corpus, path = tmp_path / "corpus", tmp_path / "i.kraq"
    corpus.mkdir()
    (corpus / "ada.txt").write_text("Ada Lovelace worked with Charles Babbage. Charles Babbage lived in London.")
    (corpus / "empty.txt").write_text("")
    built = kraq("index", corpus, "--out", path)
    assert "empty.txt" in built.stderr

    more = tmp_path / "more"
    more.mkdir()
    (more / "byron.txt").write_text("Lord Byron was the father of Ada Lovelace.")
    (more / "blank.txt").write_text("")
    added = kraq("update", "--add", path, more)
    assert "1 item could not be done" in added.stderr
    assert "blank.txt" in added.stderr
    assert "empty.txt" not in added.stderr
    assert "1 item failed before this run" in added.stderr

    report = as_json(kraq("update", "--add", path, more / "byron.txt", "--json"))
    assert report["former_failures"] == len(report["failures"]) == 2


def test_a_kraq_toml_that_index_rejects_is_rejected_by_what_changes_an_index(
    kraq: WarmShell, corpus: Path, tmp_path: Path
) -> None:
    done = kraq("index", corpus, "--out", tmp_path / "i.kraq", cwd=tmp_path)
    assert done.returncode == 0
    (tmp_path / "kraq.toml").write_text("[chunking]\nmax_tokns = 100\n")
    index = tmp_path / "i.kraq"
    refused = "[chunking] is no section"
    assert refused in kraq("index", corpus, "--out", tmp_path / "other.kraq", cwd=tmp_path).stderr
    changes: list[list[str | Path]] = [
        ["update", index, corpus],
        ["update", "--add", index, corpus],
        ["remove", index, "ada.txt"],
        ["index", index],
    ]
    for words in changes:
        assert refused in kraq(*words, cwd=tmp_path).stderr, words
