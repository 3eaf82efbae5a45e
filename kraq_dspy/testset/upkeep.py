"""Keeps a test set true to an index that has changed: marks rows whose evidence is not there, and adds new ones."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.ports import Progress
from kraq_dspy.records import NEW, OWN, REJECTED, STALE, Chunk, Document, GoldPassage, Question, TestsetRow, content_id
from kraq_dspy.testset import kinds
from kraq_dspy.testset.changes import is_said
from kraq_dspy.testset.making import TestsetPlan, make_testset, own_rows
from kraq_dspy.testset.testset import Testset
from kraq_dspy.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TestsetUpdate:
    """What an update did. `kept` rows stand as they were, `moved` ones have their passages at another place, `stale`
    ones are to be looked at, or deleted; `added` are new. `unasked` is the number of documents that no row is about."""

    __test__ = False

    testset: Testset
    kept: int
    moved: int
    stale: int
    added: int
    unasked: int


def update_testset(
    space: Workspace,
    testset: Testset,
    *,
    new: int | None = None,
    seed: int = 0,
    draft: str | Path | None = None,
    progress: Progress | None = None,
) -> TestsetUpdate:
    """Update a test set after its index has changed, and add new rows.

    Args:
        space: the open index.
        testset: the test set.
        new: how many new rows to make of statements; by default as many of each half as became stale.
        seed: the random seed.
        draft: a file that keeps every outcome, so that the same call resumes.
        progress: is called as the update advances.

    Returns:
        The updated test set, and what changed.

    kraq keeps rejected rows. It keeps another row while the documents have each passage of the row word for word;
    otherwise the row becomes stale. An unanswerable question becomes stale if a passage answers it now. New rows are
    about documents that no current row is about.

    >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
    ...     update_testset(space, Testset.load("test.jsonl")).testset.save("test.jsonl")
    """
    chunks = list(space.index.all(Chunk))
    by_text: defaultdict[tuple[str, str], list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        by_text[chunk.document_id, content_id("text", chunk.text)[:16]].append(chunk)
    texts = {document.id: document.text for document in space.index.all(Document)}

    rows = [_as_now(row, by_text, texts, chunks) for row in testset]
    stale = sum(row.status == STALE for row in rows)
    moved = sum(now.passages != before.passages for now, before in zip(rows, testset, strict=True))

    became_stale = [now for now, before in zip(rows, testset, strict=True) if now.status == STALE != before.status]
    n_own = sum(row.half == OWN for row in became_stale) if new is None else 0
    n_new = len(became_stale) - n_own if new is None else new
    known = {row.id for row in rows}
    every = own_rows(space, TestsetPlan(len(texts), seed=seed, own=space.index.count(Question))) if n_own else []
    added = [row for row in every if row.id not in known][:n_own]
    if n_new:
        used = _documents_of(_not_stale(rows))
        rest = frozenset(chunk.id for chunk in chunks if chunk.document_id not in used)
        counts = {kind: count for kind, count in testset.counts().items() if kind in kinds.KINDS}
        plan = TestsetPlan(n_new, counts or None, seed, only=rest)
        made = make_testset(space, plan=plan, draft=draft, progress=progress) if rest else Testset(())
        added += [row for row in made if row.id not in known]
    whole = dataclasses.replace(testset, rows=(*rows, *added))
    unasked = len(texts.keys() - _documents_of(_not_stale(whole)))
    return TestsetUpdate(whole, len(rows) - stale - moved, moved, stale, len(added), unasked)


def _not_stale(rows: Iterable[TestsetRow]) -> list[TestsetRow]:
    return [row for row in rows if row.status != STALE]


def _documents_of(rows: Iterable[TestsetRow]) -> set[str]:
    """Return the documents that rows are about."""
    documents: set[str] = set()
    for row in rows:
        documents.update(row.supporting_ids, row.hidden_documents)
    return documents


def _as_now(
    row: TestsetRow,
    by_text: Mapping[tuple[str, str], Sequence[Chunk]],
    texts: Mapping[str, str],
    chunks: Sequence[Chunk],
) -> TestsetRow:
    if row.status == REJECTED:
        return row

    if row.type == kinds.FALSE_PREMISE:
        status = STALE if is_said(row.question, chunks) else _status_if_true(row)
        return dataclasses.replace(row, status=status)

    passages = [_found_again(passage, by_text, texts) for passage in row.passages]
    passages_found_again = tuple(passage for passage in passages if passage is not None)
    if len(passages_found_again) < len(passages):
        return dataclasses.replace(row, status=STALE)
    return dataclasses.replace(row, passages=passages_found_again, status=_status_if_true(row))


def _status_if_true(row: TestsetRow) -> str:
    """Return the status of a row whose evidence is there: one that was stale is to be looked at like a new one."""
    return NEW if row.status == STALE else row.status


def _found_again(
    passage: GoldPassage, by_text: Mapping[tuple[str, str], Sequence[Chunk]], texts: Mapping[str, str]
) -> GoldPassage | None:
    """The passage where it stands now; None where its document does not have its text as a whole any more."""
    same = by_text.get((passage.document_id, passage.text_hash), ())
    for chunk in sorted(same, key=lambda chunk_of_same_text: abs(chunk_of_same_text.start - passage.start)):
        return dataclasses.replace(passage, chunk_id=chunk.id, start=chunk.start, end=chunk.end)
    text = texts.get(passage.document_id, "")
    is_at_its_place = content_id("text", text[passage.start : passage.end])[:16] == passage.text_hash
    return passage if is_at_its_place else None  # the document was cut otherwise, and says the same
