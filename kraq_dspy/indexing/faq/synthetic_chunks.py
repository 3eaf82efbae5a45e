"""Remembers how documents were cut for synthetic pairs, so that what models said of these chunks can be forgotten."""

import json
from collections.abc import Collection, Iterator

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings

_NOTED = "synthetic passages"  # the name under which the index keeps the ways of cutting


def note_cut(index: Index, settings: ChunkSettings) -> None:
    """Note one way in which documents are cut: the results of synthetic pairs are known by these chunks."""
    cuts = {(each.tokens, each.overlap) for each in _cuts(index)} | {(settings.tokens, settings.overlap)}
    index.results.settle(_NOTED, json.dumps(sorted(cuts)))


def ids_in(index: Index, document_ids: Collection[str]) -> Iterator[str]:
    """The ids of the chunks that synthetic pairs were made of, which are not the index's own.

    They follow from the documents' text, so ask before the documents are removed or replaced.
    """
    cuts = _cuts(index)
    if not cuts:
        return
    for document_id in sorted(index.known(Document, document_ids)):
        [document] = index.get(Document, [document_id])
        for cut in cuts:
            yield from (chunk.id for chunk in chunk_document(document, cut))


def _cuts(index: Index) -> list[ChunkSettings]:
    noted = json.loads(index.results.settled(_NOTED) or "[]")
    return [ChunkSettings(tokens=tokens, overlap=overlap) for tokens, overlap in noted]
