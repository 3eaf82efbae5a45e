"""Tests the facts about the bundled example that the demo and the README count on."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.records import Document

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MINI = EXAMPLES / "hotpotqa-mini"


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    loaded = list(load_documents(MINI / "corpus.jsonl"))
    documents = [item for item in loaded if isinstance(item, Document)]
    assert len(documents) == len(loaded), "no passage may be refused"
    return documents


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (MINI / "questions.jsonl").read_text("utf-8").splitlines()]


def test_it_holds_600_passages_with_ids_titles_and_texts_of_their_own(documents: list[Document]) -> None:
    assert len({document.id for document in documents}) == len({document.text for document in documents}) == 600
    assert all(document.title == document.id for document in documents)


def test_both_supporting_passages_of_each_of_60_questions_are_inside(
    documents: list[Document], questions: list[dict[str, Any]]
) -> None:
    ids = {document.id for document in documents}
    assert len({question["id"] for question in questions}) == len(questions) == 60
    for question in questions:
        assert len(set(question["supporting_ids"])) == 2
        assert ids >= {*question["supporting_ids"], *question["context_ids"]}
        assert question["question"].strip()
        assert question["answers"]


def test_both_types_of_question_are_in_the_mix_of_the_source(questions: list[dict[str, Any]]) -> None:
    assert Counter(question["type"] for question in questions) == {"bridge": 46, "comparison": 14}


def test_most_passages_are_distractors_that_come_with_the_questions(questions: list[dict[str, Any]]) -> None:
    assert len({name for question in questions for name in question["context_ids"]}) > 500


def test_source_licence_and_changes_are_stated() -> None:
    readme = (MINI / "README.md").read_text("utf-8")
    for words in ("CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/", "Zhilin Yang", "Wikipedia", "cut"):
        assert words in readme


def test_the_script_makes_the_same_files_again(shared_data: Path, tmp_path: Path) -> None:
    script = [sys.executable, str(EXAMPLES / "make_hotpotqa_mini.py")]
    subprocess.run([*script, "--data", str(shared_data / "hotpotqa"), "--out", str(tmp_path)], check=True)
    for name in ("corpus.jsonl", "questions.jsonl"):
        assert (tmp_path / name).read_bytes() == (MINI / name).read_bytes()
