"""Reads passages and the triples that another system extracted from them.

Either a folder with `corpus` (id, title, text) and `triples` (passage_id, entities, triples), or one file whose rows
have both. Files are .jsonl, .jsonl.gz or .parquet.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.graph.exchange.rows import SUFFIXES, Row, document_of_passages, find_table, read_rows, text_of
from kraq_dspy.errors import ExchangeError
from kraq_dspy.records import Chunk, Document, ExtractedEntity, ExtractedRelationship, Extraction

logger = logging.getLogger(__name__)

CORPUS = ("corpus", "passages")
TRIPLES = ("triples",)


@dataclass(frozen=True)
class ImportedTriples:
    """One document and one chunk for each passage, in the corpus's order; an extraction for each, empty where no
    triples are known. `problems` says what was left out, with counts."""

    documents: tuple[Document, ...]
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]
    problems: tuple[str, ...]


def read_triples(path: Path) -> ImportedTriples:
    """What is at `path`. Raises ExchangeError for missing files or columns, or when nothing is left."""
    problems: Counter[str] = Counter()
    corpus, triples = _files(path)
    passages: dict[str, tuple[str, str]] = {}
    listed: dict[str, _Listed] = defaultdict(_Listed)
    for row in _checked(corpus, problems, need_text=True):
        id, text = text_of(_any(row, "id", "passage_id")).strip(), text_of(_any(row, "text", "passage"))
        if not id or not text.strip():
            problems["passages without an id or a text were left out"] += 1
            continue
        if id in passages:
            problems["passages with the id of an earlier one were left out"] += 1
            continue
        passages[id] = (text_of(row.get("title")).strip(), text)
        if triples == corpus:
            listed[id].take(row, problems)
    if triples != corpus:
        for row in _checked(triples, problems, need_text=False):
            id = text_of(_any(row, "passage_id", "id")).strip()
            if id in passages:
                listed[id].take(row, problems)
            else:
                problems["rows of triples name a passage that the corpus does not have"] += 1
    if not passages:
        raise ExchangeError(f"{corpus.name!r} has no usable passage. {_sentences(problems)}".strip())
    return _records(passages, listed, corpus.name, problems)


def _records(
    passages: dict[str, tuple[str, str]], listed: dict[str, "_Listed"], source: str, problems: Counter[str]
) -> ImportedTriples:
    documents: list[Document] = []
    chunks: list[Chunk] = []
    extractions: list[Extraction] = []
    for id, (title, text) in passages.items():
        document, (chunk,), _ = document_of_passages(Document(id, title, text, source), [text])
        documents.append(document)
        chunks.append(chunk)
        extractions.append(listed[id].extraction(chunk.id) if id in listed else Extraction(chunk.id))
    bare = sum(not extraction.relationships for extraction in extractions)
    if bare:
        problems["passages have no triples"] += bare
    if problems:
        logger.warning("%s: %s", source, _sentences(problems))
    return ImportedTriples(
        tuple(documents),
        tuple(chunks),
        tuple(extractions),
        tuple(f"{count} {problem}" for problem, count in sorted(problems.items())),
    )


class _Listed:
    """What the rows of one passage list, each once, in their order."""

    def __init__(self) -> None:
        self.entities: dict[str, str] = {}
        self.triples: dict[tuple[str, str, str], None] = {}

    def take(self, row: Row, problems: Counter[str]) -> None:
        for entity in _list(row.get("entities")):
            name, type = _entity(entity)
            if name:
                self.entities.setdefault(name, type)
            else:
                problems["entities were not a text"] += 1
        for triple in _list(row.get("triples")):
            parts = _triple(triple)
            if parts:
                self.triples.setdefault(parts)
            else:
                problems["triples were not three texts"] += 1

    def extraction(self, chunk_id: str) -> Extraction:
        return Extraction(
            chunk_id,
            tuple(ExtractedEntity(name, type, "") for name, type in self.entities.items()),
            tuple(
                ExtractedRelationship(subject, target, predicate, f"{subject} {predicate} {target}.")
                for subject, predicate, target in self.triples
            ),
        )


def _files(path: Path) -> tuple[Path, Path]:
    """The corpus and the triples: two files of a folder, or one and the same."""
    if path.is_dir():
        corpus, triples = find_table(path, CORPUS), find_table(path, TRIPLES)
        if corpus is None or triples is None:
            lacking = CORPUS if corpus is None else TRIPLES
            there = ", ".join(sorted(repr(each.name) for each in path.iterdir())[:20]) or "nothing"
            raise ExchangeError(
                f"The folder {path.name!r} has no {' or '.join(lacking)} ({', '.join(SUFFIXES)}); it has: {there}."
            )
        return corpus, triples
    if not path.is_file():
        raise ExchangeError(f"There is no file or folder {str(path)!r}.")
    if path.name.split(".")[0] in TRIPLES and (corpus := find_table(path.parent, CORPUS)):
        return corpus, path
    return path, path


def _checked(path: Path, problems: Counter[str], *, need_text: bool) -> Iterator[Row]:
    """The rows that have the columns; raises ExchangeError where none has them."""
    required = [("id", "passage_id"), ("text", "passage")] if need_text else [("passage_id", "id"), ("triples",)]
    fits = False
    columns: set[str] = set()

    def bad_line(reason: str) -> None:
        problems[f"lines of {path.name} were {reason}"] += 1

    for row in read_rows(path, bad_line):
        if all(any(name in row for name in names) for names in required):
            fits = True
            yield row
        else:
            columns.update(row)
            problems[f"rows of {path.name} lacked a column"] += 1
    if columns and not fits:
        missing = [" or ".join(map(repr, names)) for names in required if not columns & set(names)]
        present = ", ".join(map(repr, sorted(columns)))
        raise ExchangeError(f"{path.name!r} lacks the column {', '.join(missing)}; it has: {present}.")


def _any(row: Row, *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _entity(value: Any) -> tuple[str, str]:
    """(name, type) of "NAME" or {"name": ..., "type": ...}; the name is "" where there is none."""
    if isinstance(value, dict):
        return text_of(_any(value, "name", "text", "title")).strip(), text_of(value.get("type")).strip()
    return (value.strip(), "") if isinstance(value, str) else ("", "")


def _triple(value: Any) -> tuple[str, str, str] | None:
    if isinstance(value, dict):
        value = [
            _any(value, *names) for names in (("subject", "source"), ("predicate", "relation"), ("object", "target"))
        ]
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(part, str) for part in value):
        return None
    subject, predicate, target = (" ".join(part.split()) for part in value)
    return (subject, predicate, target) if subject and target else None


def _sentences(problems: Counter[str]) -> str:
    return "; ".join(f"{count} {problem}" for problem, count in sorted(problems.items()))
