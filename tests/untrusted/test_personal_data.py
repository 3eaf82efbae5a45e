"""Follows personal data through the whole of `kraq index`, `kraq status` and `kraq questions`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraq_dspy import Index, build_index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Document, Question
from kraq_dspy.settings import RedactSettings, Settings
from tests.whole_program import app

DOCUMENTS = [
    Document("a", "Ada", "Ada Lovelace of Engine House, ada@example.org, wrote to Charles Babbage, +44 20 7946 0958."),
    Document("b", "Babbage", "Charles Babbage paid Ada Lovelace with card 4111 1111 1111 1111 at Engine House."),
]
SECRETS = ("ada@example.org", "7946 0958", "4111 1111")


def files_with(folder: Path, text: str) -> list[str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
    return sorted(str(path.relative_to(folder)) for path in paths)


def test_what_is_struck_out_is_in_no_file_of_the_index_and_does_not_come_back(tmp_path: Path) -> None:
    struck = Settings(redact=RedactSettings(emails=True, phones=True, cards=True))
    build_index(DOCUMENTS, tmp_path / "plain.kraq")
    build_index(DOCUMENTS, tmp_path / "struck.kraq", settings=struck)
    for secret in SECRETS:
        assert files_with(tmp_path / "plain.kraq", secret)
        assert files_with(tmp_path / "struck.kraq", secret) == []
    with pytest.raises(IndexStateError, match="--redact again"):
        build_index(DOCUMENTS, tmp_path / "struck.kraq")
    build_index(DOCUMENTS, tmp_path / "struck.kraq", settings=struck)


def test_questions_with_personal_data_are_reported(tmp_path: Path) -> None:
    build_index(DOCUMENTS, tmp_path / "x.kraq")
    with Index.open(tmp_path / "x.kraq", write=True) as index:
        personal = Question("q1", "Who is ada@example.org?", "kraq", None, 0, (), ())
        harmless = Question("q2", "Who paid Ada Lovelace?", "kraq", None, 0, (), ())
        index.replace(Question, [personal, harmless, *index.all(Question)])
    status = json.loads(CliRunner().invoke(app, ["status", str(tmp_path / "x.kraq"), "--json"]).stdout)
    assert status["personal_questions"]["q1"] == ["e-mail address"]
    questions = json.loads(
        CliRunner().invoke(app, ["questions", str(tmp_path / "x.kraq"), "--personal", "--json"]).stdout
    )
    listed = [question["id"] for question in questions]
    assert "q1" in listed
    assert "q2" not in listed
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "x.kraq")])
    assert "hold e-mail addresses" in " ".join(shown.output.split())


def test_kraq_index_redact(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(DOCUMENTS[0].text)
    words = ["index", str(tmp_path / "a.txt"), "--out", str(tmp_path / "x.kraq"), "--redact", "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert files_with(tmp_path / "x.kraq", "ada@example.org") == []
