"""Tests that files of questions and documents are read with every column, and that a broken row is named."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Dataset, Example, load_dataset
from kraq_dspy.eval.datasets import PassageTriples, load_local
from kraq_dspy.records import Document

SMALL = Dataset(
    "small",
    (Document("d1", "Oslo", "Oslo is in Norway.", metadata={"year": 1048}), Document("d2", "", "罗马")),
    (
        Example("q1", "Where is Oslo?", ("Norway",), ("d1",), "extractive", context_ids=("d2", "d1")),
        Example("q2", "Which?", ("a", "b", "c"), (), "list", answer_items=(("a", "b"), ("c",)), metadata={"hops": [1]}),
        Example("q3", "Unanswerable?", ()),
    ),
    (PassageTriples("d1", ("Oslo", "Norway"), (("Oslo", "is in", "Norway"),)),),
)


def write(folder: Path, name: str, *rows: Any) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_every_column_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    oslo = {"id": "d1", "title": "Oslo", "text": "Oslo is in Norway.", "year": 1048}
    write(folder, "corpus.jsonl", oslo, {"id": "d2", "text": "罗马"})
    oslo_question = {"id": "q1", "question": "Where is Oslo?", "answers": ["Norway"], "supporting_ids": ["d1"]}
    list_question = {"id": "q2", "question": "Which?", "answers": ["a", "b", "c"], "exact_answer": [["a", "b"], ["c"]]}
    write(
        folder,
        "questions.jsonl",
        {**oslo_question, "type": "extractive", "context_ids": ["d2", "d1"]},
        {**list_question, "type": "list", "hops": [1]},
        {"id": "q3", "question": "Unanswerable?", "answers": []},
    )
    triples = {"entities": ["Oslo", "Norway"], "triples": [["Oslo", "is in", "Norway"]]}
    write(folder, "triples.jsonl", {"passage_id": "d1", **triples})
    assert load_local(folder) == SMALL


def test_plain_and_compressed_files_are_read_and_other_columns_are_kept(tmp_path: Path) -> None:
    write(tmp_path, "questions.jsonl", {"id": 7, "question": "Who?", "answers": ["x"], "level": "hard"})
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as file:
        file.write('{"id": "d", "title": null, "text": "t", "source": "web", "tags": ["a"]}\n\n')
    dataset = load_local(tmp_path, name="mine")
    assert dataset.name == "mine"
    assert dataset.examples == (Example("7", "Who?", ("x",), metadata={"level": "hard"}),)
    assert dataset.documents == (Document("d", "", "t", metadata={"source": "web"}),)


def test_synonyms_of_a_factoid_are_no_items_of_a_list(tmp_path: Path) -> None:
    row = {"id": "q", "question": "?", "answers": ["a", "b"], "exact_answer": [["a", "b"]]}
    write(tmp_path, "questions.jsonl", {**row, "type": "factoid"})
    assert load_local(tmp_path).examples[0].answer_items == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "q", "question": "?"}], "questions.jsonl, line 1 is missing answers; it has id, question"),
        ([["q"]], "line 1 is list; expected an object"),
        ([{"id": "q", "question": "?", "answers": []}] * 2, r"1 id\(s\) of questions occur more than once, 'q' first"),
        ([{"id": "q", "question": "?", "answers": [], "supporting_ids": ["x"]}], "'q' names the document 'x'"),
        ([{"id": "q", "question": " ", "answers": []}], "question 'q' is blank"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, rows: list[Any], message: str) -> None:
    write(tmp_path, "questions.jsonl", *rows)
    with pytest.raises(EvaluationError, match=message):
        load_local(tmp_path)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"id": "q", "question": "?", "answers": []}\n{"id"\n')
    with pytest.raises(EvaluationError, match=r"questions.jsonl, line 2 is not JSON"):
        load_local(tmp_path)


def test_triples_must_have_three_parts_and_a_known_passage(tmp_path: Path) -> None:
    write(tmp_path, "questions.jsonl", {"id": "q", "question": "?", "answers": []})
    write(tmp_path, "corpus.jsonl", {"id": "d", "text": "t"})
    write(tmp_path, "triples.jsonl", {"passage_id": "d", "triples": [["a", "b"]]})
    with pytest.raises(EvaluationError, match="has 2 parts; expected 3"):
        load_local(tmp_path)
    write(tmp_path, "triples.jsonl", {"passage_id": "x", "triples": []})
    with pytest.raises(EvaluationError, match="triples of 'x', which is not in the corpus"):
        load_local(tmp_path)


def test_a_folder_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"neither questions.jsonl.gz nor questions.jsonl"):
        load_local(tmp_path)


@pytest.mark.parametrize(
    ("name", "questions", "documents"),
    [
        ("musique", 100, 1890),
        ("bioasq", 255, 6580),
        ("hotpotqa", 485, 4788),
        ("xquad_zh", 964, 190),
        ("cmu_wiki_qa", 2001, 0),
    ],
)
def test_real_sets_are_read_whole(shared_data: Path, name: str, questions: int, documents: int) -> None:
    dataset = load_dataset(name, shared_data)
    assert (len(dataset.examples), len(dataset.documents)) == (questions, documents)


def test_real_triples_and_list_answers_are_read(shared_data: Path) -> None:
    musique = load_dataset("musique", shared_data)
    assert sum(len(passage.triples) for passage in musique.triples) == 17_234
    lists = [example for example in load_dataset("bioasq", shared_data).examples if example.type == "list"]
    assert len(lists) == 58
    assert all(example.answer_items for example in lists)
