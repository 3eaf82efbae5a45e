"""Puts together the 60 articles that every system indexes, and chooses the questions that they can answer.

The pieces of multihop_rag do not say which article they are of. Those that hold a fact which a question rests on (540
of 618, in the order of the file) are put together by nine; a question is asked if all of its facts are in them.
"""

import gzip
import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

ARTICLES, PIECES = 60, 9


@dataclass(frozen=True)
class Piece:
    text: str
    fact_ids: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A question, the facts that it rests on as the articles state them, and its answers, any of which is right."""

    id: str
    text: str
    facts: tuple[str, ...]
    answers: tuple[str, ...] = ()


def read_pieces(data: Path) -> list[Piece]:
    """The pieces that become articles, in the order of the file."""
    rows = _rows(data / "multihop_rag" / "chunks.jsonl.gz")
    pieces = [Piece(row["text"], tuple(row["fact_ids"])) for row in rows if row["fact_ids"]]
    return pieces[: ARTICLES * PIECES]


def as_articles(pieces: Sequence[Piece], size: int = PIECES) -> list[str]:
    """`size` pieces to an article; the last may have fewer."""
    return ["\n\n".join(piece.text for piece in pieces[at : at + size]) for at in range(0, len(pieces), size)]


def read_pages(data: Path, name: str, share: float = 0.1) -> list[str]:
    """The first documents of a data set that have that share of its characters together, as they came."""
    texts = [row["text"] for row in _rows(data / name / "corpus.jsonl.gz")]
    most = share * sum(map(len, texts))
    ends = accumulate(map(len, texts))
    return [text for text, end in zip(texts, ends, strict=True) if end <= most]


def read_questions(data: Path, pieces: Sequence[Piece], most: int, seed: int = 0) -> list[Asked]:
    """At most `most` of the questions whose facts are all among the pieces, drawn by the seed."""
    facts = {row["id"]: row["text"] for row in _rows(data / "multihop_rag" / "corpus.jsonl.gz")}
    present = {fact for piece in pieces for fact in piece.fact_ids}
    rows = answerable(_rows(data / "multihop_rag" / "questions.jsonl.gz"), present)
    drawn = random.Random(seed).sample(rows, min(most, len(rows)))
    return [
        Asked(row["id"], row["question"], tuple(facts[fact] for fact in row["supporting_ids"]), tuple(row["answers"]))
        for row in drawn
    ]


def answerable(questions: Sequence[dict[str, Any]], present: Collection[str]) -> list[dict[str, Any]]:
    """Those that rest on facts, all of which are present."""
    return [row for row in questions if row["supporting_ids"] and set(row["supporting_ids"]) <= set(present)]


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
