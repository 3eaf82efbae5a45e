"""Hands the questions of an index on as JSON lines, with the FAQ cache's answers and the passages behind them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.faq import question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.faq.sources import opened_faq
from kraq_dspy.records import Chunk, Document, FaqEntry


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """`left_out` by reason."""

    file: Path
    rows: int
    left_out: Mapping[str, int]


def export_dataset(
    index: Index, out: Path, *, pending: bool = False, unanswered: bool = False, passages: int = 20
) -> DatasetReport:
    """Write a line for each question that has an answer and evidence; an earlier file is replaced.

    A line has `id`, `question`, `answer`, `supporting_ids` (documents that answer it), `evidence` (at most `passages`
    of their passages with `id`, `document_id`, `title` and `text`, best first), `share` (the part of the question's
    group that answers it), `community_id`, `level`, `difficulty`, `origin` and `model`, so `kraq eval INDEX FILE` reads
    it, and `datasets.load_dataset("json", data_files=FILE)`. Answers are those that are approved, with `pending` also
    those that wait for review; `unanswered` are written with null.

    >>> from kraq_dspy import build_index
    >>> _ = build_index([Document("ada", "Ada", "Ada Lovelace wrote notes on the Analytical Engine.")], "notes.kraq")
    >>> with Index.open("notes.kraq") as index:
    ...     export_dataset(index, Path("set.jsonl"), unanswered=True).rows
    1

    Raises IndexStateError if no line is left.
    """
    left_out: Counter[str] = Counter()
    entries: list[FaqEntry] = []  # never stale ones: their documents say something else by now
    with opened_faq(index.path) as faq:
        if faq is not None:
            entries = faq.entries("approved") + (faq.entries("pending") if pending else [])
    rows = list(_rows(index, entries, left_out, unanswered=unanswered, passages=passages))
    if not rows:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "it has no questions"
        raise IndexStateError(
            f"{str(index.path)!r} gives no row ({reasons}). Answer its questions with `kraq faq seed` and "
            "approve them, take answers that nobody has approved (--pending), or questions without one (--unanswered)."
        )

    with access.copied_from(index.path):
        out.parent.mkdir(parents=True, exist_ok=True)
        with replaced(out) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return DatasetReport(out, len(rows), left_out)


def _rows(
    index: Index, entries: Sequence[FaqEntry], left_out: Counter[str], *, unanswered: bool, passages: int
) -> Iterator[dict[str, Any]]:
    """KRAQ questions first, then what the FAQ cache has besides."""
    answers = {question_key(entry.question): entry for entry in entries if entry.answer}
    deepest = index.deepest_level()
    difficulty = {deepest: "easy", 0: "hard"}
    for question in index.questions(source="kraq"):
        entry = answers.pop(question_key(question.text), None)
        if entry is None and not unanswered:
            left_out["without an answer"] += 1
        elif not question.evidence:
            left_out["without evidence"] += 1
        else:
            evidence = index.chunks_by_id(question.evidence[:passages])
            yield {
                "id": question.id,
                "question": question.text,
                "answer": entry.answer if entry else None,
                "supporting_ids": sorted(set(index.documents_of(question.evidence).values())),
                "evidence": list(map(_passage, evidence)),
                "share": question.share,
                "community_id": question.community_id,
                "level": question.level,
                # Read off the level, not measured: the evidence of the broadest lies far apart.
                "difficulty": "medium" if deepest <= 0 else difficulty.get(question.level, "medium"),
                "origin": "kraq",
                "model": question.model,
            }

    present = set(index.ids(Document))
    for entry in answers.values():
        document_ids = sorted({source.document_id for source in entry.sources} & present)
        if not document_ids:
            left_out["without evidence"] += 1
            continue

        chunks = [chunk for each in document_ids for chunk in index.all(Chunk, document_id=each)]
        holding = [chunk for chunk in chunks if entry.answer.casefold() in chunk.text.casefold()]
        yield {
            "id": f"faq-{entry.number}",
            "question": entry.question,
            "answer": entry.answer,
            "supporting_ids": document_ids,
            "evidence": list(map(_passage, (holding or chunks)[:passages])),
            "share": None,
            "community_id": None,
            "level": None,
            "difficulty": "easy",
            "origin": entry.origin,
            "model": "",
        }


def _passage(chunk: Chunk) -> dict[str, str]:
    return {"id": chunk.id, "document_id": chunk.document_id, "title": chunk.title, "text": chunk.text}
