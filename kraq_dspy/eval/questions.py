"""Reads questions to evaluate with: a csv, jsonl or parquet file, a data set's folder, or examples in memory.

It also knows which questions an adapter learned from, so that it is not measured on them: an adapter's folder holds
`learned.json`, short hashes that tell a question again and do not give it away.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.asset.corpus.formats.rows import BadRow
from kraq_dspy.asset.corpus.formats.values import ValueSettings, holds_rows, read_values
from kraq_dspy.errors import EvaluationError, did_you_mean
from kraq_dspy.eval.columns import FOUND, QuestionColumns
from kraq_dspy.eval.datasets import Example, load_local
from kraq_dspy.eval.datasets.dataset import is_dataset
from kraq_dspy.eval.gold import Gold, document_names, first_column, gold_answers, is_missing, plain_names
from kraq_dspy.eval.metrics.answers import normalise_answer
from kraq_dspy.eval.recorded import CONTEXT_IDS, CONTEXTS, names_answer_given
from kraq_dspy.models.lms.local_models import adapter_folder
from kraq_dspy.records import content_id

QuestionSource = str | Path | Iterable[Any]
"""A file, a folder, or examples: `dspy.Example`s, dictionaries, `Example`s."""

QUESTION = ("question", "query", "user_input", "input", "prompt", "q")
ANSWERS = ("answers", "answer", "gold", "reference", "reference_answer", "expected", "expected_answer", "ground_truth",
           "ground_truths", "expected_output", "response_gold", "target", "label")  # fmt: skip
DOCUMENTS = ("supporting_ids", "supporting_documents", "documents", "document_ids", "doc_ids", "document", "doc_id",
             "evidence_ids", "reference_context_ids", "sources", "source")  # fmt: skip
OF_KRAQ = frozenset(("question", "supporting_ids", "passages", "checks"))
"""Columns that a row of `kraq testset` has; those of one's own files are not looked for in it."""
IDS = ("id", "_id", "question_id", "qid", "query_id")
ROWS = ("data", "Data", "questions", "examples", "rows", "items")
"""Where a file of one object has its rows."""
_LIKE_EVIDENCE = re.compile("doc|context|source|evidence|passage|support|file", re.IGNORECASE)
_NO_EVIDENCE = ("hidden_documents", *DOCUMENTS, *CONTEXTS, *CONTEXT_IDS)
_READ_ELSEWHERE = frozenset((*_NO_EVIDENCE, *IDS, *ANSWERS, "type", "response", "passages", "nuggets"))
_OF_TEST_SETS = frozenset(("community_level", "checks", "half"))
FORMATS = (".csv", ".tsv", ".jsonl", ".jsonl.gz", ".json", ".parquet")


def read_questions(source: QuestionSource, columns: QuestionColumns = FOUND, *, encoding: str = "") -> list[Example]:
    """Read questions from a file or an object, in their order.

    Args:
        source: a csv, tsv, jsonl, json or parquet file, the folder of a data set, rows, `dspy.Example`s, a
            pandas DataFrame, a `datasets.Dataset` or a dictionary of columns.
        columns: names of columns that kraq does not find by itself.
        encoding: the encoding of a file that is not UTF-8.

    Returns:
        The questions. Answers and documents may be missing; a cell with a JSON list holds several.

    Raises:
        EvaluationError: for a file that cannot be read, a row without a question, or an absent column.

    >>> [example.answers for example in read_questions([{"question": "Which city?", "answer": "Oslo"}])]
    [('Oslo',)]
    """
    in_table = False
    if isinstance(source, str | Path):
        path = Path(source)
        in_table = path.name.lower().endswith((".csv", ".tsv"))
        rows, where = _read(path, encoding, columns), str(source)
    else:
        rows, where = _listed(source), "the questions"

    if not rows:
        raise EvaluationError(f"There are no questions in {where}.")

    examples = [
        row if isinstance(row, Example) else _example(row, number, columns, where, in_table=in_table)
        for number, row in enumerate(rows, 1)
    ]
    twice = [each for each, count in Counter(example.id for example in examples).items() if count > 1]
    if twice:
        raise EvaluationError(f"{where}: ids that occur more than once: {len(twice)}, {twice[0]!r} first.")
    return examples


def _read(path: Path, encoding: str, columns: QuestionColumns) -> Sequence[Any]:
    if path.is_dir():
        if not is_dataset(path):
            raise EvaluationError(f"{str(path)!r} is a folder without questions.jsonl; name a file of questions.")
        return load_local(path).examples
    if not path.is_file():
        raise EvaluationError(f"There is no file {str(path)!r} with questions.")
    if not holds_rows(path.name):
        raise EvaluationError(f"{path.name!r} is of no kind that holds questions; expected {', '.join(FORMATS)}.")

    expected = (columns.question.lower(),) if columns.question else QUESTION
    settings = ValueSettings(id_column="", title_column="", text_column="", encoding=encoding, expected=expected)
    rows: list[Mapping[str, Any]] = []
    try:
        for row in read_values(path, settings):
            if isinstance(row, BadRow):
                raise EvaluationError(f"{str(path)!r} cannot be read: {row.reason}")
            rows.append(row.values)
    except OSError as error:
        raise EvaluationError(f"{str(path)!r} cannot be read: {error}.") from error
    return _unfolded(rows[0]) if len(rows) == 1 else rows


def _unfolded(row: Mapping[str, Any]) -> Sequence[Any]:
    """The rows in an object that holds a list of them, as data sets in one JSON file do; else the object alone."""
    if any(str(name).strip().lower() in QUESTION for name in row):
        return [row]
    listed = next((row[name] for name in ROWS if isinstance(row.get(name), list) and row[name]), None)
    if listed is None or not all(isinstance(each, Mapping) for each in listed):
        return [row]
    if "paragraphs" not in listed[0]:
        return list(listed)

    questions: list[Any] = []  # as in SQuAD
    for article in listed:
        for paragraph in article["paragraphs"]:
            questions += paragraph["qas"]
    return questions


def _listed(source: Any) -> Sequence[Any]:
    """The rows of a DataFrame, a data set, a dictionary of columns, or what lists them."""
    if hasattr(source, "to_dicts"):  # polars
        return list(source.to_dicts())
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # pandas
        return list(source.to_dict("records"))
    if hasattr(source, "to_pylist"):  # Arrow
        return list(source.to_pylist())
    if hasattr(source, "goldens"):  # DeepEval
        return list(source.goldens)
    return _listed_mapping(source) if isinstance(source, Mapping) else list(source)


def _listed_mapping(source: Mapping[str, Any]) -> Sequence[Any]:
    """The rows of a dictionary: one row, columns by name, or the only part of a data set."""
    values = list(source.values())
    if not values or any(isinstance(value, str) for value in values):
        return [source]
    if hasattr(values[0], "column_names"):
        if len(values) > 1:
            raise EvaluationError(f"The data set has the parts {', '.join(map(repr, source))}. Give one of them.")
        return list(values[0])
    return [dict(zip(source, row, strict=True)) for row in zip(*values, strict=True)]


def _example(row: Any, number: int, columns: QuestionColumns, where: str, *, in_table: bool) -> Example:
    place = f"{where}, row {number}"
    named = _as_mapping(row.toDict() if isinstance(row, dspy.Example) else row)
    if named is None:
        raise EvaluationError(f"{place} is a {type(row).__name__}; expected a row of named values.")

    if named.keys() >= OF_KRAQ:
        columns = FOUND
    question = _question_in(named, columns, place)
    gold = _gold_in(named, columns, place, in_table=in_table)
    documents = _column(named, columns.documents, DOCUMENTS, place)
    document_ids = document_names(named.get(documents), in_table=in_table) if documents else ()

    own_id = next((str(named[name]) for name in IDS if not is_missing(named.get(name))), f"q{number}")
    taken = {*IDS, "question", "answers", "supporting_ids", "type", "answer_items"}
    metadata = {str(name): value for name, value in named.items() if name not in taken}
    kind = str(named.get("type") or "")
    return Example(own_id, question, gold.answers, document_ids, kind, gold.items, metadata=metadata)


def _gold_in(row: Mapping[Any, Any], columns: QuestionColumns, place: str, *, in_table: bool) -> Gold:
    """The right answers of a row, and the items of a list that kraq itself wrote. Raises EvaluationError, with the
    place, for answers that cannot be read."""
    right_answers = [name for name in ANSWERS if name != "answer"] if names_answer_given(row) else ANSWERS
    column = _column(row, columns.answers, right_answers, place)
    try:
        gold = gold_answers(row.get(column), in_table=in_table) if column else Gold()
    except EvaluationError as error:
        raise EvaluationError(f"{place}, column {column!r}: {error}.") from error

    items = row.get("answer_items") or ()
    if not items or isinstance(items, str):
        return gold
    return dataclasses.replace(gold, items=tuple(tuple(synonyms) for synonyms in items))


def _question_in(row: Mapping[Any, Any], columns: QuestionColumns, place: str) -> str:
    """Raises EvaluationError for a row without a question."""
    column = _column(row, columns.question, QUESTION, place)
    question = row.get(column) if column else None
    if not isinstance(question, str) or not question.strip():
        known = ", ".join(map(repr, row)) or "none"
        raise EvaluationError(
            f"{place} has no question; its columns are: {known}. Name the right one: --question-column NAME, "
            "question in [columns] of kraq.toml, or QuestionColumns(question=NAME)."
        )
    return question.strip()


def _as_mapping(row: Any) -> Mapping[str, Any] | None:
    """A row of named values, also of the objects of RAGAS and DeepEval; None if it is none."""
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "model_dump"):
        return dict(row.model_dump())
    if hasattr(row, "__dict__") and not isinstance(row, type):
        return {name: value for name, value in vars(row).items() if not name.startswith("_")}
    return None


def _column(row: Mapping[str, Any], named: str, known: Sequence[str], place: str) -> str:
    """The column that was named, or the first known one that is there; "" if there is none."""
    if named:
        if named not in row:
            raise EvaluationError(f"{place} has no column {named!r}{did_you_mean(named, [str(each) for each in row])}.")
        return named
    return str(first_column(row, known))


def _columns_read(plain: Mapping[str, str], columns: QuestionColumns) -> dict[str, str]:
    """The column of the question, of the answers and of the documents, of those that there are."""
    read = {}
    for what, named, known in zip(
        ("question", "answers", "documents"), dataclasses.astuple(columns), (QUESTION, ANSWERS, DOCUMENTS), strict=True
    ):
        column = named or next((plain[name] for name in known if name in plain), "")
        if column:
            read[what] = column
    return read


def columns_note(examples: Sequence[Example], columns: QuestionColumns = FOUND) -> str:
    """Which columns were read as what, and which were not read; "" where all are read under a name that kraq knows.

    >>> columns_note(read_questions([{"Question": "Which city?", "Expected answer": "Oslo", "owner": "Ada"}]))
    "Columns read: question from 'Question', answers from 'Expected answer'; not read: 'owner'."
    """
    names = list(dict.fromkeys(name for example in examples for name in example.metadata))
    plain = plain_names(names)
    if plain.keys() >= _OF_TEST_SETS:
        return ""  # a test set of kraq's own

    read = _columns_read(plain, columns)
    others = {plain_name: name for plain_name, name in plain.items() if name not in read.values()}
    left = [name for plain_name, name in others.items() if plain_name not in _READ_ELSEWHERE]
    if not left and all(name in (*QUESTION, *ANSWERS, *DOCUMENTS) for name in read.values()):
        return ""

    told = [", ".join(f"{what} from {name!r}" for what, name in read.items()) or "those of kraq's own names"]
    told += [f"not read: {', '.join(map(repr, left))}"] if left else []
    return f"Columns read: {'; '.join(told)}."


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


def unread_note(examples: Sequence[Example]) -> str:
    """Return what a report says if no question names its evidence, and a column that was not read
    may; "" otherwise.

    >>> unread_note([Example("q1", "Which city?", (), metadata={"context_file": "oslo.md"})])
    "No question names its evidence, so there is no recall. If 'context_file' does: --documents-column context_file"
    """
    if any(example.supporting_ids for example in examples):
        return ""
    names = dict.fromkeys(name for example in examples for name in example.metadata)
    likely = [name for name in names if _LIKE_EVIDENCE.search(name) and name not in _NO_EVIDENCE]
    if not likely:
        return ""
    name = likely[0]
    return f"No question names its evidence, so there is no recall. If {name!r} does: --documents-column {name}"


def no_answers_note(examples: Sequence[Example]) -> str:
    """What a report says if no question has a right answer, but other columns; "" otherwise.

    >>> no_answers_note([Example("q1", "Which city?", (), metadata={"expected_response": "Oslo"})])
    "No question has a right answer. Its column may be one of 'expected_response': --answer-column NAME"
    """
    names = dict.fromkeys(name for example in examples for name in example.metadata)
    if not names or any(example.answers or example.answer_items for example in examples):
        return ""
    return (
        f"No question has a right answer. Its column may be one of {', '.join(map(repr, names))}: --answer-column NAME"
    )


def learned_note(count: int) -> str:
    """Return what a report says of the questions that were left out."""
    are = "question is" if count == 1 else "questions are"
    return f"{count:,} {are} left out: an adapter in use was trained on {'it' if count == 1 else 'them'}."
