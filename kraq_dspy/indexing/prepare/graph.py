"""Gives the searches what an index holds: its graph by id, and embeddings of sentences, entities and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.sync import Point, TextVectors, text_point
from kraq_dspy.asset.store.vectors.copying import copy_points
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.records import Chunk, Community, Entity, Relationship, Summary
from kraq_dspy.retrievers.reports import report_text
from kraq_dspy.retrievers.sentence_window import sentence_id


class IndexGraph(SharedByCopies):
    """A `GraphSource` over an index. Which communities an entity belongs to is read once."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        return self.index.get(Entity, ids)

    def links(self, entity_ids: Sequence[str]) -> list[Relationship]:
        by_id: dict[str, Relationship] = {}
        for entity_id in entity_ids:
            for link in self.index.all(Relationship, source_id=entity_id):
                by_id[link.id] = link
            for link in self.index.all(Relationship, target_id=entity_id):
                by_id[link.id] = link
        return list(by_id.values())

    def community_of(self, entity_id: str, level: int) -> str | None:
        reported = self._communities_of.get(entity_id, ())
        return next((community_id for its_level, community_id in reported if its_level <= level), None)

    def reports(self, community_ids: Sequence[str]) -> list[tuple[Community, Summary]]:
        communities = self.index.get(Community, community_ids)
        return list(zip(communities, self.index.get(Summary, community_ids), strict=True))

    def report_ids_at(self, level: int) -> frozenset[str]:
        if level not in self._at_level:
            here = (community.id for community in self.index.communities_at(level))
            self._at_level[level] = self._reported.intersection(here)
        return self._at_level[level]

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return self.index.chunks_by_id(ids)

    @cached_property
    def _reported(self) -> frozenset[str]:
        return frozenset(self.index.ids(Summary))

    @cached_property
    def _at_level(self) -> dict[int, frozenset[str]]:
        return {}

    @cached_property
    def _communities_of(self) -> dict[str, list[tuple[int, str]]]:
        """(level, id) of the communities with a report, by entity id, narrowest first."""
        by_entity: dict[str, list[tuple[int, str]]] = {}
        for community in self.index.all(Community):
            if community.id in self._reported:
                for entity_id in community.entity_ids:
                    by_entity.setdefault(entity_id, []).append((community.level, community.id))
        for communities in by_entity.values():
            communities.sort(reverse=True)
        return by_entity


@dataclass(frozen=True)
class SearchedTexts:
    """The texts that a search compares a question with, by the ids of what they are of, and what filters ask about."""

    texts: Mapping[str, str]
    payloads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def sentence_texts(index: Index) -> SearchedTexts:
    """Each sentence under its chunk's title, filtered as its chunk is."""
    texts: dict[str, str] = {}
    payloads = {}
    for chunk in index.all(Chunk):
        for start, end in sentence_spans(chunk.text):
            name = sentence_id(chunk.id, (start, end))
            texts[name] = f"{chunk.title}\n{chunk.text[start:end]}" if chunk.title else chunk.text[start:end]
            payloads[name] = {**chunk.metadata, "document_id": chunk.document_id}
    return SearchedTexts(texts, payloads)


def entity_texts(index: Index) -> SearchedTexts:
    """Entities by name and description."""
    return SearchedTexts({entity.id: f"{entity.name}: {entity.description}" for entity in index.all(Entity)})


def report_texts(index: Index) -> SearchedTexts:
    """Reports by title and text, filtered by "level" and "document_id"."""
    texts = {summary.community_id: f"{summary.title}\n{report_text(summary)}" for summary in index.all(Summary)}
    payloads = {
        community.id: {"level": community.level, "document_id": community.id}
        for community in index.all(Community)
        if community.id in texts
    }
    return SearchedTexts(texts, payloads)


def sentence_vectors(index: Index, embedder: Embedder, progress: Progress | None = None) -> TextVectors:
    """Embeddings of `sentence_texts`, made if that was not done yet.

    Costs an embedding and a point for each sentence, so four to six times those of the passages, and holds the texts in
    memory while it is open. Raises IndexStateError for an index without passages.
    """
    return _embedded(index, "sentences", embedder, sentence_texts(index), progress)


def entity_vectors(index: Index, embedder: Embedder, progress: Progress | None = None) -> TextVectors:
    """Embeddings of `entity_texts`, made if that was not done yet. Raises IndexStateError without any."""
    return _embedded(index, "entities", embedder, entity_texts(index), progress)


def report_vectors(index: Index, embedder: Embedder, progress: Progress | None = None) -> TextVectors:
    """Embeddings of `report_texts`, made if that was not done yet. Raises IndexStateError for an index without
    any."""
    return _embedded(index, "reports", embedder, report_texts(index), progress)


def carry(whole: Index, view: Index) -> None:
    """Give a view the embeddings of those of its texts that stand in the whole index word for word; if nothing was
    embedded there, nothing is."""
    for name, texts_of in (("sentences", sentence_texts), ("entities", entity_texts), ("reports", report_texts)):
        if whole.vectors_named(name).count():
            searched = texts_of(view)
            points = (
                Point(text_point(id, text), text, searched.payloads.get(id, {})) for id, text in searched.texts.items()
            )
            copy_points(whole, view, name, points)


def embed_graph(index: Index, embedder: Embedder, progress: Progress | None = None) -> dict[str, float]:
    """Embeds entities and reports, as `kraq precompute DIR graph` does; searches do it themselves if it was not
    done. Counts `entities`, `reports` and what was `embedded` now."""
    stores = index.vectors_named("entities"), index.vectors_named("reports")
    before = [store.ids() for store in stores]
    entity_vectors(index, embedder, progress)
    report_vectors(index, embedder, progress)
    embedded = sum(len(store.ids() - ids) for store, ids in zip(stores, before, strict=True))
    return {"entities": index.count(Entity), "reports": index.count(Summary), "embedded": embedded}


def _embedded(
    index: Index, what: str, embedder: Embedder, searched: SearchedTexts, progress: Progress | None
) -> TextVectors:
    if not searched.texts:
        index.require_documents()
        raise IndexStateError(
            f"{str(index.path)!r} has no {what} to search. Finish the build: kraq index CORPUS --out {index.path}, or "
            "use a program over passages."
        )
    vectors = TextVectors(index.vectors_named(what), embedder, searched.texts, searched.payloads)
    vectors.sync(f"embed {what}", progress)
    return vectors
