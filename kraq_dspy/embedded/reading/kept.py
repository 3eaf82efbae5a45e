"""Keeps what the parser says of an index's passages beside their other results: it goes when its passage goes.

Analyses of the bundled example's passages come with the package, so that `kraq demo` need not parse them:
`scripts/read_example.py` writes them, and they count only for the reading that made them (`MADE_BY`).

This module is the port `embedded_model.Analyst`.
"""

import json
import lzma
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy.asset.store.sync import batches
from kraq_dspy.embedded.extract import read as reading
from kraq_dspy.embedded.reading.processes import Parsers
from kraq_dspy.embedded.reading.reader import MADE_BY, is_english, reader
from kraq_dspy.language.analysis import READ, Analysis, from_values
from kraq_dspy.records import Chunk, Document

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index

FILE = "analyses.json.xz"
"""Its name in the example's folder."""
__all__ = [
    "analyses_of",
    "analysis",
    "forget_other_readings",
    "is_english",
    "made_by",
    "read_passages",
    "reading",
    "remember",
    "take_shipped",
]

_BATCH = 32  # passages that are parsed at once
_AHEAD = 2  # batches for each process that are begun before they are asked for


def read_passages(index: "Index", chunk_ids: Sequence[str]) -> Iterator[Chunk]:
    """Yield the passages, each when its analysis is kept and the reader of this process remembers it.

    Those in English that are not kept yet are parsed, in processes that end with the last passage or when the iterator
    is closed. Of a passage in another language it is kept that the parser does not read it. An index that is open for
    reading keeps nothing.
    """
    waiting: deque[_Batch] = deque()
    with Parsers(len(chunk_ids)) as parsers:
        for ids in batches(chunk_ids, _BATCH):
            waiting.append(_Batch(index, ids, parsers))
            if len(waiting) > _AHEAD * parsers.count:
                yield from waiting.popleft()
        for batch in waiting:
            yield from batch


def analyses_of(index: "Index", chunk_ids: Sequence[str]) -> dict[str, Analysis]:
    """What the parser says of these passages, by the chunk's id. Passages in other languages are absent.

    What is not kept is parsed now. An index that is open for reading uses what an earlier version of the reading kept.
    """
    outputs = index.results.outputs(READ, chunk_ids)
    analyses = {id: from_values(output) if output else None for id, output in outputs.items()}
    unread = [id for id in dict.fromkeys(chunk_ids) if id not in outputs]
    analyses |= {chunk.id: reader().analysis(chunk.passage) for chunk in read_passages(index, unread)}
    return {id: analysis for id in chunk_ids if (analysis := analyses.get(id)) is not None}


def forget_other_readings(index: "Index") -> None:
    """Before an index is changed: what another version of the parser kept goes, so that readings are never mixed."""
    if index.results.settled(READ) != MADE_BY:
        index.results.prune(READ, ())
        index.results.settle(READ, MADE_BY)


def made_by() -> str:
    """The parser and the version of the reading."""
    return MADE_BY


def analysis(passage: str) -> Analysis | None:
    """What the parser says of a passage; None of one that is not in English."""
    return reader().analysis(passage)


def remember(analyses: Mapping[str, Analysis | None]) -> None:
    """The reader of this process takes over what was read before, by passage."""
    reader().remember(analyses)


def take_shipped(example: Path) -> None:
    """The reader of this process takes over the analyses that come with the bundled example."""
    reader().take_shipped(shipped_analyses(example))


def shipped_analyses(example: Path) -> dict[str, Analysis]:
    """The analysis of each passage of an example's folder; none if another reading made them, or no file is there."""
    try:
        shipped = json.loads(lzma.decompress((example / FILE).read_bytes()))
    except FileNotFoundError:
        return {}
    if shipped["made_by"] != MADE_BY:
        return {}
    return {passage: from_values(values) for passage, values in shipped["passages"].items()}


class _Batch:
    """Passages, of which those that are not kept yet are being parsed."""

    def __init__(self, index: "Index", chunk_ids: Sequence[str], parsers: Parsers) -> None:
        self._index, self._chunks = index, index.get(Chunk, chunk_ids)
        self._kept = index.results.outputs(READ, chunk_ids)

        unread = [chunk for chunk in self._chunks if chunk.id not in self._kept]
        texts = {each.id: each.text for each in index.get(Document, [chunk.document_id for chunk in unread])}
        self._english = [chunk for chunk in unread if is_english(chunk.text, texts.get(chunk.document_id, ""))]
        self._parsed: Future[list[Any]] = parsers.submit([chunk.passage for chunk in self._english])

    def __iter__(self) -> Iterator[Chunk]:
        parsed = dict(zip((chunk.id for chunk in self._english), self._parsed.result(), strict=True))

        for chunk in self._chunks:
            output = self._kept.get(chunk.id)
            if output is None:
                output = parsed.get(chunk.id, [])
                if self._index.is_writer:
                    self._index.results.save(READ, chunk.id, MADE_BY, output, model=MADE_BY)
            reader().remember({chunk.passage: from_values(output) if output else None})
            yield chunk
