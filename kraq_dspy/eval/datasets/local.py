"""Reads data sets from files in one schema: a folder with `corpus`, `questions` and, where there are any, `triples`.

Each is gzip-compressed JSON Lines (`.jsonl.gz`) or plain (`.jsonl`):
corpus: id, title, text; questions: id, question, answers, supporting_ids, type, where known context_ids and
exact_answer (a list of synonym lists); triples: passage_id, entities, triples, where known extractor.
Other columns become metadata.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets.dataset import Dataset, Example, PassageTriples
from kraq_dspy.records import Document

_QUESTION_COLUMNS = {"id", "question", "answers", "supporting_ids", "type", "context_ids", "exact_answer"}


def load_local(folder: Path, *, name: str = "") -> Dataset:
    """A data set from its folder, whose name it takes; `triples` are left empty where there are none.

    Raises EvaluationError when there are no questions, or a line is not JSON or lacks a column.
    """
    name = name or folder.name
    questions = _find(folder, "questions")
    if questions is None:
        raise EvaluationError(f"{str(folder)!r} has neither questions.jsonl.gz nor questions.jsonl.")
    corpus, triples = _find(folder, "corpus"), _find(folder, "triples")
    return Dataset(
        name=name,
        documents=tuple(_document(row, where) for where, row in json_objects(corpus, EvaluationError, "the corpus"))
        if corpus
        else (),
        examples=tuple(
            _example(row, where) for where, row in json_objects(questions, EvaluationError, "the questions")
        ),
        triples=tuple(_triples(row, where) for where, row in json_objects(triples, EvaluationError, "the triples"))
        if triples
        else (),
    )


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set itself, not a folder of data sets."""
    return _find(folder, "questions") is not None


def save_local(dataset: Dataset, folder: Path) -> None:
    """Writes what `load_local` reads: a sample that was drawn once can be kept."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(
        folder / "corpus.jsonl.gz",
        (
            {**document.metadata, "id": document.id, "title": document.title, "text": document.text}
            for document in dataset.documents
        ),
    )
    _write(folder / "questions.jsonl.gz", (_question_row(example) for example in dataset.examples))
    if dataset.triples:
        _write(
            folder / "triples.jsonl.gz",
            (
                {
                    "passage_id": passage.document_id,
                    "extractor": passage.extractor,
                    "entities": passage.entities,
                    "triples": passage.triples,
                }
                for passage in dataset.triples
            ),
        )


def _document(row: dict[str, Any], where: str) -> Document:
    _require(row, ("id", "text"), where)
    metadata = {
        key: value
        for key, value in row.items()
        if key not in {"id", "title", "text"} and isinstance(value, str | int | float | bool)
    }
    return Document(id=str(row["id"]), title=row.get("title") or "", text=row["text"], metadata=metadata)


def _example(row: dict[str, Any], where: str) -> Example:
    _require(row, ("id", "question", "answers"), where)
    # Only a list question is scored item by item: elsewhere exact_answer holds synonyms of one answer.
    items = row.get("exact_answer") or [] if row.get("type") == "list" else []
    return Example(
        id=str(row["id"]),
        question=row["question"],
        answers=tuple(row["answers"]),
        supporting_ids=tuple(row.get("supporting_ids") or ()),
        type=row.get("type") or "",
        answer_items=tuple(tuple(synonyms) for synonyms in items),
        context_ids=tuple(row.get("context_ids") or ()),
        metadata={key: value for key, value in row.items() if key not in _QUESTION_COLUMNS},
    )


def _question_row(example: Example) -> dict[str, Any]:
    row: dict[str, Any] = {
        **example.metadata,
        "id": example.id,
        "question": example.question,
        "answers": example.answers,
        "supporting_ids": example.supporting_ids,
        "type": example.type,
    }
    if example.answer_items:
        row["exact_answer"] = example.answer_items
    if example.context_ids:
        row["context_ids"] = example.context_ids
    return row


def _triples(row: dict[str, Any], where: str) -> PassageTriples:
    _require(row, ("passage_id", "triples"), where)
    for triple in row["triples"]:
        if len(triple) != 3:
            raise EvaluationError(f"{where}: the triple {triple!r} has {len(triple)} parts; expected 3.")
    return PassageTriples(
        document_id=str(row["passage_id"]),
        entities=tuple(row.get("entities") or ()),
        triples=tuple((subject, predicate, object_) for subject, predicate, object_ in row["triples"]),
        extractor=row.get("extractor") or "",
    )


def _find(folder: Path, stem: str) -> Path | None:
    return next((path for end in (".jsonl.gz", ".jsonl") if (path := folder / f"{stem}{end}").is_file()), None)


def _require(row: Mapping[str, Any], columns: tuple[str, ...], where: str) -> None:
    missing = [column for column in columns if row.get(column) is None]
    if missing:
        raise EvaluationError(f"{where} lacks {', '.join(missing)}; it has {', '.join(row)}.")


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    # Without time and name in the gzip header, the same data make the same file.
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        for row in rows:
            packed.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
