"""Questions, answers and evidence are handed on as lines that `kraq eval` and the library `datasets` read."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Index
from kraq_dspy.apps.dataset import DatasetReport, export_dataset
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.errors import IndexStateError
from kraq_dspy.eval import read_questions
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.faq.sources import sources_of
from kraq_dspy.records import Chunk, Community, Document, Question, Summary
from kraq_dspy.settings import Settings
from tests.conftest import WarmShell

TEXTS = {
    "rhine": "The Rhine flows into the North Sea.",
    "elbe": "The Elbe flows into the North Sea, too.",
    "danube": "The Danube flows into the Black Sea.",
    "dnieper": "The Dnieper flows into the Black Sea, too.",
    "ada": "Ada Lovelace wrote the first program.",
    "grace": "Grace Hopper wrote the first compiler.",
}
COMMUNITIES = {  # level and documents
    "rivers": (0, ("rhine", "elbe", "danube", "dnieper")),
    "north": (1, ("rhine", "elbe")),
    "black": (1, ("danube", "dnieper")),
    "women": (0, ("ada", "grace")),
}


def made(path: Path) -> Path:
    """Each community has a summary and a question, "What about NAME?"; those on "north" and "women" are answered, the
    second one not approved yet; a person's entry rests on "grace"."""
    with Index.create(path, Settings(), encoder_name="none", encoder_dimension=2) as index:
        for id, text in TEXTS.items():
            index.add([Document(id, id.title(), text), Chunk(f"c-{id}", id, 0, 0, len(text), text, 9, id.title())])
        for name, (level, documents) in COMMUNITIES.items():
            chunk_ids = tuple(f"c-{id}" for id in documents)
            children = ("north", "black") if name == "rivers" else ()
            parent = "rivers" if level else None
            index.add(
                [
                    Community(name, level, parent, children, (), (), chunk_ids),
                    Summary(name, name.title(), f"Waters and works: {name}."),
                    Question(
                        f"q-{name}",
                        f"What about {name}?",
                        "kraq",
                        name,
                        level,
                        chunk_ids,
                        documents,
                        "embedded",
                        evidence=chunk_ids,
                    ),
                ]
            )
        with closing(FaqCache(path / FAQ)) as faq:
            entries = [
                NewEntry("What about north?", "Two rivers.", "approved", sources_of(index, ["rhine"]), "kraq"),
                NewEntry("What about women?", "Two pioneers.", "pending", sources_of(index, ["ada"]), "kraq"),
                NewEntry("Who wrote a compiler?", "Grace Hopper", "approved", sources_of(index, ["grace"])),
            ]
            faq.add_all(entries, by="test")
        index.update_manifest(complete=True)
    return path


@pytest.fixture
def index_dir(tmp_path: Path) -> Path:
    return made(tmp_path / "waters.kraq")


def exported(index_dir: Path, **how: Any) -> tuple[DatasetReport, dict[str, dict[str, Any]]]:
    """The report, and the rows by question."""
    with Index.open(index_dir) as index:
        report = export_dataset(index, index_dir.parent / "out" / "set.jsonl", **how)
    rows = [json.loads(line) for line in report.file.read_text("utf-8").splitlines()]
    assert report.rows == len(rows)
    return report, {row["question"]: row for row in rows}


def test_rows_are_questions_with_approved_answers_and_their_evidence(index_dir: Path) -> None:
    report, rows = exported(index_dir)
    assert set(rows) == {"What about north?", "Who wrote a compiler?"}
    north, compiler = rows["What about north?"], rows["Who wrote a compiler?"]
    assert (north["answer"], north["level"], north["difficulty"], north["origin"]) == ("Two rivers.", 1, "easy", "kraq")
    assert (north["community_id"], north["supporting_ids"]) == ("north", ["elbe", "rhine"])
    assert [passage["text"] for passage in north["evidence"]] == [TEXTS["rhine"], TEXTS["elbe"]]
    assert (compiler["level"], compiler["origin"], compiler["supporting_ids"]) == (None, "person", ["grace"])
    assert [passage["id"] for passage in compiler["evidence"]] == ["c-grace"]
    assert report.left_out == {"without an answer": 3}
    assert {example.question: example.answers for example in read_questions(report.file)} == {
        "What about north?": ("Two rivers.",),
        "Who wrote a compiler?": ("Grace Hopper",),
    }


def test_pending_answers_and_questions_without_one_are_taken_on_request(index_dir: Path) -> None:
    _, rows = exported(index_dir, unanswered=True, pending=True, passages=1)
    assert rows["What about women?"]["answer"] == "Two pioneers."
    assert rows["What about black?"]["answer"] is None
    assert rows["What about rivers?"]["difficulty"] == "hard"
    assert {len(row["evidence"]) for row in rows.values()} == {1}


def test_an_answer_whose_documents_have_changed_never_goes_in(index_dir: Path) -> None:
    with closing(FaqCache(index_dir / FAQ)) as faq:
        [north] = [entry for entry in faq.entries("approved") if entry.question == "What about north?"]
        faq.change(north.number, by="test", status="stale")
    assert exported(index_dir, unanswered=True, pending=True)[1]["What about north?"]["answer"] is None


def test_an_index_that_gives_no_row_says_why(index_dir: Path) -> None:
    (index_dir / FAQ).unlink()
    with pytest.raises(IndexStateError, match=r"gives no row \(4 without an answer\)"):
        exported(index_dir)


def test_the_command_writes_a_file_and_refuses_its_options_elsewhere(
    kraq: WarmShell, index_dir: Path, tmp_path: Path
) -> None:
    done = kraq("export", index_dir, "--format", "dataset", "--pending", "--out", tmp_path / "set.jsonl", "--json")
    assert json.loads(done.stdout)["rows"] == 3
    refused = kraq("export", index_dir, "--pending", "--out", tmp_path / "x")
    assert refused.returncode == 2
    assert "--format dataset" in refused.stderr
