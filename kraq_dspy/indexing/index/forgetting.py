"""Forgets what was made from documents that are gone or have changed, wherever in the folder of an index it lies.

Each preparation, and the FAQ cache, takes out what is its own; this file says which of them are asked, and when. What
a build makes again by itself (graph, communities, summaries, questions, vectors) is not looked after here.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kraq_dspy.asset.store.faq import content_hash
from kraq_dspy.asset.store.index import Index
from kraq_dspy.indexing.faq import synthetic_chunks
from kraq_dspy.indexing.faq.withdrawing import Phrase, phrases_of, withdraw
from kraq_dspy.indexing.prepare import instructed, qa_pairs, raptor, summarised
from kraq_dspy.records import Chunk, Community, Document, Entity, Relationship, Summary

_OF_BUILDS: dict[str, type] = {
    "read": Chunk, "extract": Chunk, "summarize": Community, "ask": Community, "word": Community, "judge": Community,
}  # fmt: skip
_OF_PREPARATIONS: dict[str, type] = {qa_pairs.STAGE: Chunk, summarised.STAGE: Document}
"""What the items of a stage are."""


def forget(index: Index, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
    """Forget whatever was made from these documents and chunks alone beside the records: stored
    answers of every stage, and what each preparation holds of them.

    Before the documents are removed or replaced: how they were cut for other ends follows from their text.
    """
    cut_otherwise = synthetic_chunks.ids_in(index, document_ids)
    index.results.forget_items({*document_ids, *chunk_ids, *cut_otherwise})
    if document_ids or chunk_ids:
        index.erase_when_complete()

    if chunk_ids:
        instructed.forget(index, chunk_ids)
        raptor.forget(index, chunk_ids)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does to the documents of the last complete state."""

    gone: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    phrases: frozenset[Phrase] = frozenset()  # of the texts that are gone


def forget_beside(index: Index) -> list[str]:
    """Forget what the change that `index` is open for takes away from the files beside its states: the FAQ cache and
    the summarised corpus. Returns what a user should know.

    Documents are compared with those of the last complete state, so a change that was killed and is gone on with
    forgets all the same.
    """
    has_faq = (index.path / "faq.db").is_file()
    if not (has_faq or summarised.is_there(index)):
        return []

    difference = _difference(index)
    problems = []
    if has_faq:
        problems += withdraw(index, difference.gone, difference.phrases)
    problems += summarised.forget(index, difference.gone | difference.changed)
    return problems


def _difference(index: Index) -> Difference:
    if not index.manifest.state:
        return Difference()

    gone: set[str] = set()
    changed: set[str] = set()
    phrases: set[Phrase] = set()
    with Index.open(index.path) as before:
        staying = index.known(Document, before.ids(Document))
        for document in before.all(Document):
            if document.id not in staying:
                gone.add(document.id)
                phrases.update(phrases_of(document.text))
            elif content_hash(document) != content_hash(index.get(Document, [document.id])[0]):
                changed.add(document.id)
    return Difference(frozenset(gone), frozenset(changed), frozenset(phrases))


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
    if summarised.is_there(index):
        yield f"documents of {summarised.FOLDER} that are not there", summarised.lost_documents(index)


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
    outdated = set()
    for summary in index.all(Summary):
        output = outputs.get(summary.community_id, {})
        if output.get("summary", summary.text) != summary.text:
            outdated.add(summary.community_id)
    return outdated


def _lost_leaves(index: Index) -> set[str]:
    leaves = raptor.leaves(index)
    return leaves - index.known(Chunk, leaves)
