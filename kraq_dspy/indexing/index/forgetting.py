"""Forgets what was made from documents that are gone or have changed, wherever in the folder of an index it lies.

What a build makes again by itself (graph, communities, summaries, questions, vectors) is not looked after here.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.catalogue import content_hash
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.errors import IndexStateError, counted
from kraq_dspy.indexing.catalogue.sources import opened_catalogue
from kraq_dspy.indexing.prepare import instructed, raptor
from kraq_dspy.records import (
    CatalogueEntry,
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    Merge,
    Question,
    Relationship,
    Summary,
)
from kraq_dspy.settings import ChunkSettings

SUMMARISED_STAGE, SUMMARISED = "k2rag", "k2rag.kraq"
SYNTHETIC_PLANS = "synthetic passages"  # the name under which it is noted how documents were cut for synthetic pairs

_OF_BUILDS: dict[str, type] = {"extract": Chunk, "summarize": Community, "ask": Community}
_OF_PREPARATIONS: dict[str, type] = {"qa pairs": Chunk, SUMMARISED_STAGE: Document}
"""What the items of a stage are."""

_WORDS = 5  # in a row that a removed text and an entry have in common, for that entry to be named


def forget(index: Index, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
    """Forget whatever was made from these documents and chunks alone beside the records: stored
    answers of every stage, and what each preparation holds of them.

    Before the documents are removed or replaced: how they were cut for other ends follows from their text.
    """
    index.results.forget_items({*document_ids, *chunk_ids, *_cut_otherwise(index, document_ids)})
    if document_ids or chunk_ids:
        index.erase_when_complete()
    if not chunk_ids:
        return
    instructed.forget(index, chunk_ids)
    raptor.forget(index, chunk_ids)


def note_synthetic_plan(index: Index, settings: ChunkSettings) -> None:
    """Note how documents are cut for synthetic pairs, whose results are known by these chunks."""
    plans = {tuple(each) for each in _plans(index)} | {(settings.tokens, settings.overlap)}
    index.results.settle(SYNTHETIC_PLANS, json.dumps(sorted(plans)))


def _cut_otherwise(index: Index, document_ids: Collection[str]) -> Iterator[str]:
    """The ids of the chunks that synthetic pairs were made of, where these are not the index's own."""
    plans = [ChunkSettings(tokens=tokens, overlap=overlap) for tokens, overlap in _plans(index)]
    for document_id in sorted(index.known(Document, document_ids)) if plans else ():
        [document] = index.get(Document, [document_id])
        for plan in plans:
            yield from (chunk.id for chunk in chunk_document(document, plan))


def _plans(index: Index) -> list[list[int]]:
    plans: list[list[int]] = json.loads(index.results.settled(SYNTHETIC_PLANS) or "[]")
    return plans


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does to the documents of the last complete state."""

    gone: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    phrases: frozenset[tuple[str, ...]] = frozenset()  # some words in a row, of those that are gone


def forget_beside(index: Index) -> list[str]:
    """Forget what the change that `index` is open for takes away from the files beside its states: the catalogue and
    the summarised corpus. Returns what a user should know.

    Documents are compared with those of the last complete state, so a change that was killed and is gone on with
    forgets all the same.
    """
    has_catalogue = (index.path / "catalogue.db").is_file()
    has_summaries = (index.path / SUMMARISED / MANIFEST).is_file()
    if not (has_catalogue or has_summaries):
        return []
    difference = _difference(index)
    problems = _withdraw(index, difference) if has_catalogue else []
    if has_summaries:
        problems += _forget_summaries(index, difference)
    return problems


def _difference(index: Index) -> Difference:
    if not index.manifest.state:
        return Difference()
    gone: set[str] = set()
    changed: set[str] = set()
    phrases: set[tuple[str, ...]] = set()
    with Index.open(index.path) as before:
        ids = before.ids(Document)
        staying = index.known(Document, ids)
        for document in before.all(Document):
            if document.id not in staying:
                gone.add(document.id)
                phrases.update(_phrases(document.text))
            elif content_hash(document) != content_hash(index.get(Document, [document.id])[0]):
                changed.add(document.id)
    return Difference(frozenset(gone), frozenset(changed), frozenset(phrases))


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    for start in range(len(words) - _WORDS + 1):
        yield tuple(words[start : start + _WORDS])


def _withdraw(index: Index, difference: Difference) -> list[str]:
    if not difference.gone:
        return []
    with opened_catalogue(index.path, write=True) as catalogue:
        assert catalogue is not None
        withdrawal = catalogue.withdraw(difference.gone)
        alike = [entry.number for entry in catalogue.entries() if _quotes(entry, difference)]
    problems = []
    if withdrawal.withdrawn:
        problems.append(
            f"{counted(len(withdrawal.withdrawn), 'answer')} of the catalogue that models made of removed documents "
            f"went with them: {_listed(withdrawal.withdrawn)}."
        )
    if stay := sorted({*withdrawal.kept, *alike}):
        problems.append(
            f"{counted(len(stay), 'answer')} of the catalogue may still tell what removed documents said: "
            f"{_listed(stay)}. They stay because somebody wrote them. To take them out: kraq catalogue remove "
            f"{index.path} NUMBERS"
        )
    return problems


def _quotes(entry: CatalogueEntry, difference: Difference) -> bool:
    texts = (entry.question, entry.answer, entry.given, *(passage.text for passage in entry.evidence))
    return any(phrase in difference.phrases for text in texts for phrase in _phrases(text))


def _listed(numbers: Collection[int]) -> str:
    shown = ", ".join(map(str, list(numbers)[:10]))
    return f"no. {shown}" + (", ..." if len(numbers) > 10 else "")


def _forget_summaries(index: Index, difference: Difference) -> list[str]:
    """The summaries of documents that are gone or have changed, and what the graph of summaries made of them.

    What models said of the others is kept, so that the next `kraq precompute --k2rag` asks for the rest alone.
    """
    path = index.path / SUMMARISED
    command = f"kraq precompute {index.path} --k2rag"
    try:
        with Index.open(path, unfinished=True) as summarised:
            ids = set(summarised.ids(Document))
            stale = ids & (difference.gone | difference.changed) | (ids - index.known(Document, ids))
        if stale:
            with Index.open(path, write=True) as summarised:
                _empty(summarised, stale)
    except IndexStateError as error:
        return [f"{SUMMARISED} may still tell what removed documents said: {error} Delete it, and run: {command}"]
    if not stale:
        return []
    return [f"The summarised corpus of k2rag lost {counted(len(stale), 'document')}; to use it again: {command}"]


def _empty(summarised: Index, stale: Collection[str]) -> None:
    """Remove documents from an index of summaries without asking a model: what is told of several documents goes whole,
    and is made again from the extractions that stay."""
    gone = set(summarised.reading_order(stale))
    concerned: set[str] = {*stale, *gone}
    made: Iterator[Entity | Relationship | Community] = chain(
        summarised.all(Entity), summarised.all(Relationship), summarised.all(Community)
    )
    concerned.update(each.id for each in made if not gone.isdisjoint(each.chunk_ids))
    summarised.update_manifest(complete=False)
    summarised.results.forget_items(concerned)
    summarised.results.unsettle(SUMMARISED_STAGE)
    summarised.results.unsettle("index")
    summarised.remove(stale, gone)
    for kind in (Entity, Relationship, Claim, Merge, Community, Summary, Question):
        summarised.replace(kind, ())
    summarised.chunk_vectors.delete(gone)
    summarised.erase_when_complete()
    summarised.update_manifest(complete=True)  # a state without them takes the place of the one with them


def erase_traces(index: Index) -> None:
    """Forget what `traces` finds and no build would: the index must be open for writing."""
    for stage in _OF_PREPARATIONS:
        forget(index, (), _without_owner(index, stage))
    forget(index, (), _lost_leaves(index))


def traces(index: Index) -> Iterator[tuple[str, set[str]]]:
    """Yield what an index keeps of documents that it does not have, and the ids concerned: stored
    answers, the tree of summaries, summarised documents."""
    for stage in (*_OF_BUILDS, *_OF_PREPARATIONS):
        yield f"stored answers of the stage {stage!r} about what is not there", _without_owner(index, stage)
    yield "stored descriptions of what is described otherwise by now", _outdated_descriptions(index)
    yield "stored summaries of what is summarised otherwise by now", _outdated_summaries(index)
    yield "passages of the tree of summaries that are not there", _lost_leaves(index)
    path = index.path / SUMMARISED
    if (path / MANIFEST).is_file():
        with Index.open(path) as summarised:
            ids = set(summarised.ids(Document))
        yield f"documents of {SUMMARISED} that are not there", ids - index.known(Document, ids)


def orphaned_answers(index: Index) -> set[str]:
    """Numbers of the catalogue's entries whose every document is gone."""
    with opened_catalogue(index.path) as catalogue:
        entries = catalogue.entries() if catalogue else []
    named = {source.document_id for entry in entries for source in entry.sources}
    gone = named - index.known(Document, named)
    return {
        str(entry.number)
        for entry in entries
        if entry.sources and all(source.document_id in gone for source in entry.sources)
    }


def _without_owner(index: Index, stage: str) -> set[str]:
    """The items of a stage whose chunk, community or document is not there."""
    ids = index.results.items(stage)
    return ids - index.known({**_OF_BUILDS, **_OF_PREPARATIONS}[stage], ids)


def _outdated_descriptions(index: Index) -> set[str]:
    ids = index.results.items("describe")
    entities, links = index.known(Entity, ids), index.known(Relationship, ids)
    outdated = ids - entities - links
    described: list[Entity | Relationship] = [
        *index.get(Entity, sorted(entities)),
        *index.get(Relationship, sorted(links)),
    ]
    outputs = index.results.outputs("describe", [each.id for each in described])
    for each in described:
        text = outputs.get(each.id, {}).get("description", "").strip()
        if text not in ("", each.description):
            outdated.add(each.id)
    return outdated


def _outdated_summaries(index: Index) -> set[str]:
    outputs = index.results.outputs("summarize", index.ids(Summary))
    return {
        summary.community_id
        for summary in index.all(Summary)
        if outputs.get(summary.community_id, {}).get("summary", summary.text) != summary.text
    }


def _lost_leaves(index: Index) -> set[str]:
    leaves = raptor.leaves(index)
    return leaves - index.known(Chunk, leaves)


def text_in_lock(path: Path) -> bool:
    """Whether the lock holds a command line, as earlier versions left it."""
    return path.is_file() and b'"command"' in path.read_bytes()
