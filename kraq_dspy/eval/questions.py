"""Reads questions to evaluate with: a csv, jsonl or parquet file, a data set's folder, or examples in memory.

It also knows which questions an adapter learned from, so that it is not measured on them: an adapter's folder holds
`learned.json`, short hashes that tell a question again and do not give it away.
"""

import contextlib
import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import EvaluationError, did_you_mean, needs
from kraq_dspy.eval.datasets import Example, load_local
from kraq_dspy.eval.datasets.dataset import is_dataset
from kraq_dspy.eval.metrics.answers import normalise_answer
from kraq_dspy.models.lms.local_models import adapter_folder
from kraq_dspy.records import content_id

QuestionSource = str | Path | Iterable[Any]
"""A file, a folder, or examples: `dspy.Example`s, dictionaries, `Example`s."""

QUESTION = ("question", "query", "user_input", "input", "prompt", "q")
ANSWERS = ("answers", "answer", "gold", "reference", "reference_answer", "expected", "expected_answer", "ground_truth",
           "ground_truths", "target", "label")  # fmt: skip
DOCUMENTS = ("supporting_ids", "supporting_documents", "documents", "document_ids", "doc_ids", "document", "doc_id",
             "evidence_ids", "sources", "source")  # fmt: skip
IDS = ("id", "_id", "question_id", "qid", "query_id")
FORMATS = (".csv", ".tsv", ".jsonl", ".jsonl.gz", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Names of columns where they are not found by themselves (`QUESTION`, `ANSWERS`, `DOCUMENTS` list those that are).

    `documents` names the documents that hold the evidence.

    >>> read_questions([{"ask": "Which city?", "right": "Oslo"}], QuestionColumns("ask", "right"))[0].answers
    ('Oslo',)
    """

    question: str = ""
    answers: str = ""
    documents: str = ""


FOUND = QuestionColumns()
"""All columns are found by themselves."""


def read_questions(source: QuestionSource, columns: QuestionColumns = FOUND) -> list[Example]:
    """The questions, in order. Answers and documents may be missing; a cell with a JSON list holds several.

    Raises EvaluationError for a file that cannot be read, a row without a question, and a column that is not there.

    >>> [example.answers for example in read_questions([{"question": "Which city?", "answer": "Oslo"}])]
    [('Oslo',)]
    """
    rows = _rows(Path(source)) if isinstance(source, str | Path) else list(source)
    where = str(source) if isinstance(source, str | Path) else "the questions"
    if not rows:
        raise EvaluationError(f"There are no questions in {where}.")
    examples = [row if isinstance(row, Example) else _example(row, n, columns, where) for n, row in enumerate(rows, 1)]
    twice = [each for each, count in Counter(example.id for example in examples).items() if count > 1]
    if twice:
        raise EvaluationError(f"{where}: {len(twice)} ids occur more than once, {twice[0]!r} first.")
    return examples


def _rows(path: Path) -> Sequence[Any]:
    if path.is_dir():
        if not is_dataset(path):
            raise EvaluationError(f"{str(path)!r} is a folder without questions.jsonl; name a file of questions.")
        return load_local(path).examples
    if not path.is_file():
        raise EvaluationError(f"There is no file {str(path)!r} with questions.")
    name = path.name.lower()
    if name.endswith((".jsonl", ".jsonl.gz")):
        return [row for _, row in json_objects(path, EvaluationError, "the questions")]
    try:
        if name.endswith((".csv", ".tsv")):
            with path.open(encoding="utf-8-sig", newline="") as file:
                return list(csv.DictReader(file, delimiter="\t" if name.endswith(".tsv") else ","))
        if name.endswith(".parquet"):
            with needs("pyarrow", "parquet", f"{name!r}, a Parquet file,"):
                from pyarrow import parquet  # a third of a second

            return list(parquet.read_table(path).to_pylist())
        if name.endswith(".json"):
            rows = json.loads(path.read_text("utf-8"))
            if isinstance(rows, list):
                return rows
            raise ValueError("it is no list of objects")
    except (ValueError, OSError) as error:  # pyarrow's errors are ValueErrors, undecodable text too
        raise EvaluationError(f"{str(path)!r} cannot be read: {error}.") from error
    raise EvaluationError(f"{path.name!r} is of no kind that holds questions; expected {', '.join(FORMATS)}.")


def _example(row: Any, number: int, columns: QuestionColumns, where: str) -> Example:
    if isinstance(row, dspy.Example):
        row = row.toDict()
    if not isinstance(row, Mapping):
        raise EvaluationError(f"{where}, row {number} is a {type(row).__name__}; expected a row of named values.")
    place = f"{where}, row {number}"
    column = _column(row, columns.question, QUESTION, place)
    question = row.get(column) if column else None
    if not isinstance(question, str) or not question.strip():
        known = ", ".join(map(repr, row)) or "none"
        raise EvaluationError(
            f"{place} has no question; its columns are: {known}. Name the right one: --question-column NAME, or "
            "QuestionColumns(question=NAME)."
        )
    answers = _column(row, columns.answers, ANSWERS, place)
    documents = _column(row, columns.documents, DOCUMENTS, place)
    own_id = next((str(row[name]) for name in IDS if row.get(name) not in (None, "")), f"q{number}")
    taken = {column, answers, documents, *IDS, "type", "answer_items"}
    items = row.get("answer_items") or ()
    return Example(
        own_id,
        question.strip(),
        _texts(row.get(answers)) if answers else (),
        _texts(row.get(documents)) if documents else (),
        str(row.get("type") or ""),
        tuple(tuple(synonyms) for synonyms in items) if not isinstance(items, str) else (),
        metadata={str(name): value for name, value in row.items() if name not in taken},
    )


def _column(row: Mapping[str, Any], named: str, known: Sequence[str], place: str) -> str:
    """The column that was named, or the first known one that is there; "" where there is none."""
    if named:
        if named not in row:
            raise EvaluationError(f"{place} has no column {named!r}{did_you_mean(named, [str(each) for each in row])}.")
        return named
    plain = {str(name).strip().lower(): name for name in row}
    return next((plain[name] for name in known if name in plain and row[plain[name]] not in (None, "", [])), "")


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.strip().startswith("["):
        with contextlib.suppress(json.JSONDecodeError):  # a text that begins so
            value = json.loads(value)
    values = [value] if isinstance(value, str | int | float) or value is None else list(value)
    return tuple(dict.fromkeys(str(each).strip() for each in values if each is not None and str(each).strip()))


LEARNED_FILE = "learned.json"
_DIGITS = 12


def fingerprint_of(question: str) -> str:
    """Twelve hexadecimal digits, the same whatever the case, punctuation and articles.

    >>> fingerprint_of("Who directed The Nun?") == fingerprint_of("who directed the Nun")
    True
    """
    return content_id("question", normalise_answer(question))[:_DIGITS]


def write_learned(folder: Path, questions: Iterable[str]) -> Path:
    """`learned.json` of an adapter that was trained on these questions."""
    file = folder / LEARNED_FILE
    file.write_text(json.dumps(sorted({fingerprint_of(each) for each in questions}), indent=0) + "\n", "utf-8")
    return file


def learned_by(models: Iterable[str]) -> frozenset[str]:
    """Fingerprints of all that the adapters in these models' names learned from ("gguf/m.gguf#adapters/mine@1a2b3c4d").

    An adapter whose folder is not on this machine, or has no `learned.json`, says nothing.
    """
    known: set[str] = set()
    for name in models:
        _, separator, adapter = name.partition("#")
        file = Path(adapter_folder(adapter)[0]) / LEARNED_FILE
        if separator and file.is_file():
            try:
                known.update(json.loads(file.read_text("utf-8")))
            except ValueError as error:
                raise EvaluationError(f"{str(file)!r} holds no fingerprints of questions: {error}.") from error
    return frozenset(known)


def without_learned(examples: Sequence[Example], learned: Collection[str]) -> list[Example]:
    """The examples whose questions are not among the fingerprints."""
    return [example for example in examples if fingerprint_of(example.question) not in learned]


def learned_note(count: int) -> str:
    """What a report says of the questions that were left out."""
    are = "question is" if count == 1 else "questions are"
    return f"{count:,} {are} left out: an adapter in use was trained on {'it' if count == 1 else 'them'}."
