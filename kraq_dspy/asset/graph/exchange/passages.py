"""Makes documents and chunks of other systems' passages, which stay the chunks they are."""

from collections.abc import Sequence

from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.records import Chunk, Document

_BETWEEN = "\n\n"


def document_of_passages(document: Document, passages: Sequence[str]) -> tuple[Document, list[Chunk], bool]:
    """`document` with its chunks, one for each of `passages`, in their order; and whether its text was kept.

    Where a passage is not literally in the document's text (GraphRAG may put a title before each text unit), the text
    becomes the passages one after the other, so that every chunk is a span of it.
    """
    spans = _spans(document.text, passages)
    kept = spans is not None
    if spans is None:
        document = Document(document.id, document.title, _BETWEEN.join(passages), document.source, document.metadata)
        spans, start = [], 0
        for passage in passages:
            spans.append((start, start + len(passage)))
            start += len(passage) + len(_BETWEEN)
    return document, chunks_at(document, spans), kept


def _spans(text: str, passages: Sequence[str]) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    search_from = 0
    for passage in passages:
        start = text.find(passage, search_from)
        if start < 0:
            return None
        spans.append((start, start + len(passage)))
        search_from = start + 1  # passages may overlap
    return spans
