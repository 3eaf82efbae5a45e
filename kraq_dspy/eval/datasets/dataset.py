"""Defines a data set, questions with answers and evidence in one schema for every source, and its files on disk."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.files import json_objects
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.records import Document, content_id


@dataclass(frozen=True, slots=True)
class Example:
    """A question and what is known about its answer.

    Args:
        id: the id of the question.
        question: the text of the question.
        answers: the right answers, each of which is enough; empty if the passages have no answer.
        supporting_ids: ids of the documents with the evidence (BEIR's qrels).
        type: the kind of question, such as "fact", "yesno" or "unanswerable".
        answer_items: the items of a list answer, each with synonyms.
        context_ids: ids of the documents that the source showed with the question.
        metadata: the other columns of the source.

    >>> Example("q1", "Which city?", ("Oslo",), supporting_ids=("doc-7",)).to_dspy().answers
    ['Oslo']
    """

    id: str
    question: str
    answers: tuple[str, ...]
    supporting_ids: tuple[str, ...] = ()
    type: str = ""
    answer_items: tuple[tuple[str, ...], ...] = ()
    context_ids: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dspy(self) -> dspy.Example:
        """Make an example for DSPy's Evaluate and optimizers: `question` is the only input. Columns
        of `metadata` come along."""
        return dspy.Example(
            **{name: value for name, value in self.metadata.items() if name not in self.__slots__},
            id=self.id,
            question=self.question,
            answers=list(self.answers),
            answer_items=[list(synonyms) for synonyms in self.answer_items],
            supporting_ids=list(self.supporting_ids),
            type=self.type,
        ).with_inputs("question")


@dataclass(frozen=True, slots=True)
class PassageTriples:
    """What an extractor found in one document: entity names, and (subject, predicate, object) triples."""

    document_id: str
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and questions about it.

    Args:
        name: the name of the data set.
        documents: the corpus; ids are unique.
        examples: the questions. Ids are unique. The corpus has each document that a question names.
        triples: gold triples of passages, if the data set has them.

    Raises:
        EvaluationError: if ids are repeated or unknown; the message names the row.

    >>> oslo = Document("oslo", "Oslo", "Oslo is the capital of Norway.")
    >>> question = Example("q1", "What is Norway's capital?", ("Oslo",), ("oslo",))
    >>> len(Dataset("mine", (oslo,), (question,)).examples)
    1
    """

    name: str
    documents: tuple[Document, ...]
    examples: tuple[Example, ...]
    triples: tuple[PassageTriples, ...] = ()

    def __post_init__(self) -> None:
        known = _unique(self.name, "documents", (document.id for document in self.documents))
        _unique(self.name, "questions", (example.id for example in self.examples))
        for example in self.examples:
            for document_id in (*example.supporting_ids, *example.context_ids):
                if document_id not in known:
                    raise EvaluationError(
                        f"{self.name}: question {example.id!r} names the document {document_id!r}, which is not in the "
                        f"corpus of {len(known)}."
                    )
            if not example.question.strip():
                raise EvaluationError(f"{self.name}: question {example.id!r} is blank.")

        for passage in self.triples:
            if passage.document_id not in known:
                raise EvaluationError(f"{self.name}: triples of {passage.document_id!r}, which is not in the corpus.")


def sample_to_tokens(
    dataset: Dataset, tokens: int, *, seed: int = 0, count_tokens: Callable[[str], int] = count_tokens
) -> Dataset:
    """Questions in random order with their evidence, until the evidence has `tokens` tokens or more (KRAQ paper 4.1).

    Evidence is a question's context and supporting documents; a document counts once.
    Questions without evidence are left out. The corpus of the sample is that evidence, in the order of the data set. A
    data set with less evidence is kept whole; the seed alone decides the order, whatever the order of the questions.
    Raises EvaluationError when no question has evidence.
    """
    if tokens < 1:
        raise ValueError(f"tokens is {tokens}; it must be 1 or more.")

    texts = {document.id: document.text for document in dataset.documents}
    ordered = sorted(dataset.examples, key=lambda example: example.id)
    random.Random(seed).shuffle(ordered)
    chosen: list[Example] = []
    sampled: set[str] = set()
    n_tokens = 0
    for example in ordered:
        evidence = {*example.context_ids, *example.supporting_ids}
        if not evidence:
            continue
        n_tokens += sum(count_tokens(texts[document_id]) for document_id in evidence - sampled)
        sampled |= evidence
        chosen.append(example)
        if n_tokens >= tokens:
            break

    if not chosen:
        raise EvaluationError(
            f"{dataset.name}: none of the {counted(len(dataset.examples), 'question')} has evidence to sample by."
        )
    documents: tuple[Document, ...] = tuple(document for document in dataset.documents if document.id in sampled)
    triples = tuple(passage for passage in dataset.triples if passage.document_id in sampled)
    return Dataset(dataset.name, documents, tuple(chosen), triples)


def _unique(name: str, kind: str, ids: Any) -> set[str]:
    counts = Counter(ids)
    twice = [row_id for row_id, count in counts.items() if count > 1]
    if twice:
        raise EvaluationError(f"{name}: {len(twice)} id(s) of {kind} occur more than once, {twice[0]!r} first.")
    return set(counts)


_QUESTION_COLUMNS = {"id", "question", "answers", "supporting_ids", "type", "context_ids", "exact_answer"}


def load_local(folder: Path, *, name: str = "") -> Dataset:
    """A data set from its folder, whose name it takes; `triples` are left empty if there are none.

    Raises EvaluationError when there are no questions, or a line is not JSON or lacks a column.
    """
    name = name or folder.name
    if not is_dataset(folder):
        raise EvaluationError(f"{str(folder)!r} has neither questions.jsonl.gz nor questions.jsonl.")

    def rows(stem: str) -> Iterable[tuple[str, dict[str, Any]]]:
        file = _find(folder, stem)
        return json_objects(file, EvaluationError, f"the {stem}") if file else ()

    return Dataset(
        name,
        tuple(_document(row, where) for where, row in rows("corpus")),
        tuple(_example(row, where) for where, row in rows("questions")),
        tuple(_triples(row, where) for where, row in rows("triples")),
    )


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a data set itself, not a folder of data sets."""
    return _find(folder, "questions") is not None


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


def _triples(row: dict[str, Any], where: str) -> PassageTriples:
    _require(row, ("passage_id", "triples"), where)
    for triple in row["triples"]:
        if len(triple) != 3:
            raise EvaluationError(f"{where}: the triple {triple!r} has {counted(len(triple), 'part')}; expected 3.")
    return PassageTriples(
        document_id=str(row["passage_id"]),
        entities=tuple(row.get("entities") or ()),
        triples=tuple((subject, predicate, object_) for subject, predicate, object_ in row["triples"]),
    )


def _find(folder: Path, stem: str) -> Path | None:
    return next((path for end in (".jsonl.gz", ".jsonl") if (path := folder / f"{stem}{end}").is_file()), None)


def _require(row: Mapping[str, Any], columns: tuple[str, ...], where: str) -> None:
    missing = [column for column in columns if row.get(column) is None]
    if missing:
        raise EvaluationError(f"{where} is missing {', '.join(missing)}; it has {', '.join(row)}.")


def checksum_of(examples: Sequence[Example], documents: Sequence[Document] = ()) -> str:
    """32 hexadecimal digits that depend on the questions and the corpus, not on their files."""
    corpus = [(each.id, each.title, each.text) for each in documents]
    questions = [(each.id, each.question, each.answers, each.answer_items, each.supporting_ids) for each in examples]
    return content_id("data", json.dumps(corpus), json.dumps(questions))
