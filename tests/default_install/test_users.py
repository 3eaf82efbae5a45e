"""Three people's first hour without an extra: one reads the questions, one composes programs, one measures an index."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.default_install.conftest import ROOT, kraq


@pytest.fixture
def docs(place: Path, tmp_path: Path) -> Path:
    """The folder of documents with its index, to be changed."""
    return Path(shutil.copytree(place, tmp_path / "work"))


def questions_of(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(kraq(["questions", "docs.kraq", "--json"], folder).text)
    return rows


def test_a_reader_sees_each_question_with_the_passages_that_answer_it(docs: Path) -> None:
    shown = kraq(["questions", "docs.kraq"], docs)
    asked = [row for row in questions_of(docs) if str(row["text"]).endswith("?")]
    assert shown.code == 0
    assert asked
    assert all(row["evidence"] for row in asked)
    assert len(re.findall(r"passages? (?:answers?|mentions?) it: ", shown.text)) == len(asked)

    question = str(asked[0]["text"])
    answer = json.loads(kraq(["ask", "docs.kraq", question, "--json"], docs).text)
    evidence = asked[0]["evidence"]
    assert isinstance(evidence, list)
    assert evidence[0] in [hit["chunk"]["id"] for hit in answer["hits"]]
    assert all(str(each["text"]).endswith("?") for each in answer["next_questions"])


def test_a_document_that_is_added_is_asked_about(docs: Path) -> None:
    before = len(questions_of(docs))
    (docs / "parking.md").write_text(
        "Mira Tolan opened the parking garage of Harrow Tower in 2004. Nordic Towing has owned the parking garage of "
        "Harrow Tower since 2011. The parking office issues green permits for twelve crowns a month."
    )
    done = kraq(["update", "--add", "docs.kraq", "parking.md"], docs)
    assert done.code == 0, done.text
    rows = questions_of(docs)
    of_parking = [row for row in rows if "parking.md" in str(row["document_ids"])]
    assert len(rows) > before
    assert [row for row in of_parking if row["evidence"]]


def test_a_composer_runs_each_program_over_texts_as_the_guide_prints_them(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "programs.md").read_text("utf-8")
    [code] = [each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "EfficientSpeculativeRAG" in each]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    assert names == ["SpeculativeRAG", "EfficientSpeculativeRAG", "K2RAG", "QARAG"]
    assert done.stdout.count("Germany") >= len(names)


def test_an_evaluator_is_told_which_columns_were_read(docs: Path) -> None:
    (docs / "mine.csv").write_text("Question,Expected answer,owner\nWho keeps the light?,Jonas Berg,Ada\n")
    done = kraq(["eval", "docs.kraq", "mine.csv", "--k", "2", "--out", "run"], docs)
    assert done.code == 0, done.text
    told = " ".join(done.text.split())
    assert "question from 'Question', answers from 'Expected answer'; not read: 'owner'." in told
    row = json.loads((docs / "run" / "rows.jsonl").read_text("utf-8").splitlines()[0])
    assert row["extra"]["gold"] == ["Jonas Berg"]
    assert len(row["hit_ids"]) <= 2


def test_a_reader_brings_the_index_up_to_date_from_a_copy_and_counts_agree(docs: Path) -> None:
    shutil.copytree(docs / "docs", docs / "copy")
    done = kraq(["update", "docs.kraq", "copy", "--json"], docs)
    assert done.code == 0, done.text
    report = json.loads(done.text)
    assert report["documents"] == {"added": 0, "changed": 0, "removed": 0}
    status = json.loads(kraq(["status", "docs.kraq", "--json"], docs).text)
    assert status["counts"]["questions"] == report["counts"]["questions"] == len(questions_of(docs))


def test_of_a_site_that_no_document_has_a_reader_is_told(docs: Path) -> None:
    shown = " ".join(kraq(["ask", "docs.kraq", "How do I leave the list of toyota.com?"], docs).text.split())
    assert "They have nothing of toyota.com." in shown
