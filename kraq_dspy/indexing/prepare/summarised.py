"""Says where K2RAG's summarised corpus lies beside an index, and takes documents out of it.

`k2rag.py` makes it, by a build of its own; this file knows no build, so that every build can clear up with it.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.errors import IndexStateError, counted
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Merge, Question, Relationship, Summary

STAGE = "k2rag"
FOLDER = "k2rag.kraq"


def is_there(index: Index) -> bool:
    return _manifest(index).is_file()


def lost_documents(index: Index) -> set[str]:
    """The ids of summarised documents that the index does not have."""
    if not is_there(index):
        return set()
    with Index.open(index.path / FOLDER) as summarised:
        ids = set(summarised.ids(Document))
    return ids - index.known(Document, ids)


def forget(index: Index, document_ids: Collection[str]) -> list[str]:
    """Take out the summaries of these documents, of all that the index does not have, and what the graph of summaries
    made of them. Returns what a user should know.

    What models said of the others is kept, so that the next `kraq precompute k2rag` asks for the rest alone.
    """
    if not is_there(index):
        return []

    path = index.path / FOLDER
    command = f"kraq precompute {index.path} k2rag"
    try:
        with Index.open(path, unfinished=True) as summarised:
            ids = set(summarised.ids(Document))
            if summarised.manifest.state:  # what readers see still has them if an earlier removal was killed
                with Index.open(path) as seen:
                    ids.update(seen.ids(Document))

        stale = ids.intersection(document_ids) | (ids - index.known(Document, ids))
        if not stale:
            return []

        with Index.open(path, write=True) as summarised:
            _take_out(summarised, stale)
    except IndexStateError as error:
        return [f"{FOLDER} may still tell what removed documents said: {error} Delete it, and run: {command}"]
    return [f"The summarised corpus of k2rag lost {counted(len(stale), 'document')}; to use it again: {command}"]


def _take_out(summarised: Index, stale: Collection[str]) -> None:
    """Remove documents from an index of summaries without asking a model: what is told of several documents goes whole,
    and is made again from the extractions that stay."""
    chunk_ids = set(summarised.reading_order(stale))
    concerned = {*stale, *chunk_ids}
    for record in _made_of_several(summarised):
        if not chunk_ids.isdisjoint(record.chunk_ids):
            concerned.add(record.id)

    summarised.update_manifest(complete=False)
    summarised.results.forget_items(concerned)
    summarised.results.unsettle(STAGE)
    summarised.results.unsettle("index")

    summarised.remove(stale, chunk_ids)
    for kind in (Entity, Relationship, Claim, Merge, Community, Summary, Question):
        summarised.replace(kind, ())
    summarised.chunk_vectors.delete(summarised.chunk_vectors.ids() - set(summarised.ids(Chunk)))

    summarised.erase_when_complete()
    summarised.update_manifest(complete=True)  # a state without them takes the place of the one with them


def _made_of_several(summarised: Index) -> Iterator[Entity | Relationship | Community]:
    return chain(summarised.all(Entity), summarised.all(Relationship), summarised.all(Community))


def _manifest(index: Index) -> Path:
    return index.path / FOLDER / MANIFEST
