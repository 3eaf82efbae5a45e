"""Keeps what the parser says of an index's passages beside their other results: it goes when its passage goes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.sync import batches
from kraq_dspy.embedded.reading.analysis import Analysis, from_values, to_values
from kraq_dspy.embedded.reading.reader import MADE_BY, is_english, reader
from kraq_dspy.records import Chunk, Document, content_id

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index

STAGE = "read"
"""The stage of an index's results that analyses are."""
_BATCH = 64  # passages that are parsed at once


def read_passages(index: "Index", chunks: Sequence[Chunk]) -> None:
    """Parse the passages in English that are not kept yet; the reader of this process remembers all of them.

    Of a passage in another language it is kept that the parser does not read it.
    """
    for batch in batches(iter(chunks), _BATCH):
        lacking = []
        for chunk in batch:
            output = index.results.find(STAGE, chunk.id, _fingerprint(chunk))
            if output is None:
                lacking.append(chunk)
            else:
                reader().remember({chunk.passage: from_values(output) if output else None})
        _read(index, lacking)


def analyses_of(index: "Index", chunk_ids: Sequence[str]) -> dict[str, Analysis]:
    """What is kept of these passages, by the chunk's id. Passages in other languages are absent, and those of an index
    that was made before passages were parsed; nothing is parsed here."""
    outputs = index.results.outputs(STAGE, chunk_ids)
    return {id: from_values(output) for id, output in outputs.items() if output}


def _read(index: "Index", chunks: Sequence[Chunk]) -> None:
    documents = {document.id: document.text for document in index.get(Document, [c.document_id for c in chunks])}
    english = [chunk for chunk in chunks if is_english(chunk.text, documents.get(chunk.document_id, ""))]
    read = dict(zip((c.id for c in english), reader().analyses([c.passage for c in english]), strict=True))

    for chunk in chunks:
        analysis = read.get(chunk.id)
        reader().remember({chunk.passage: analysis})
        output = to_values(analysis) if analysis is not None else []
        index.results.save(STAGE, chunk.id, _fingerprint(chunk), output, model=MADE_BY)


def _fingerprint(chunk: Chunk) -> str:
    return content_id(MADE_BY, chunk.passage)
