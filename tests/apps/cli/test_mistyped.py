"""Mistyped names, columns and places are refused before anything is done, with a name that is near."""

import json
from pathlib import Path

import pytest

from tests.conftest import WarmShell


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["bench", "kraq-99"], ["no table 'kraq-99'", "did you mean 'kraq-9'?", "kraq bench list"]),
        (["eval", "reprt", "x"], ["did you mean 'report'?"]),
        (["export", "x", "--out", "y", "--format", "datset"], ["'datset' is not one of 'parquet', 'graphml'"]),
    ],
)
def test_a_word_near_to_a_known_one_is_told_which(kraq: WarmShell, words: list[str], messages: list[str]) -> None:
    refused = kraq(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    text = " ".join(refused.stderr.replace("│", " ").split())
    for message in messages:
        assert message in text


@pytest.mark.parametrize(
    "words",
    [
        ["export", "none.kraq", "--out", "/proc/x"],
        ["export", "none.kraq", "--format", "graphml", "--out", "/proc/x"],
        ["finetune", "pairs", "--dataset", "musique", "--out", "/proc/x.jsonl"],
    ],
)
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_a_place_where_nothing_can_be_written_is_refused_by_its_own_name_first(
    kraq: WarmShell, words: list[str]
) -> None:
    refused = kraq(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    text = " ".join(refused.stderr.split())
    assert f"'{words[-1]}' cannot be written: nothing can be made in '/proc'" in text
    assert "Choose another --out." in text


def test_a_file_that_is_a_folder_is_refused(kraq: WarmShell, tmp_path: Path) -> None:
    refused = kraq("export", "none.kraq", "--format", "graphml", "--out", tmp_path)
    assert refused.returncode == 2
    assert "is a folder; --out names a file here." in " ".join(refused.stderr.split())


@pytest.mark.parametrize(("option", "what"), [("--title-column", "title"), ("--id-column", "id")])
def test_a_column_that_no_row_has_is_said_with_those_that_there_are(
    kraq: WarmShell, tmp_path: Path, option: str, what: str
) -> None:
    rows = [{"text": f"The Danube flows to sea {number}.", "heading": "Danube", "key": number} for number in range(3)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    refused = kraq("index", tmp_path / "corpus.jsonl", option, "headlin", "--out", tmp_path / "i.kraq")
    assert refused.returncode == 1
    text = " ".join(refused.stderr.split())
    assert f"There is no column 'headlin' for the {what}; there are: 'text', 'heading', 'key'." in text
    assert f"Name the right one: {option} NAME, or {what}_column in [corpus] of kraq.toml." in text
