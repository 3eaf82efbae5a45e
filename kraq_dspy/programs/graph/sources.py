"""Gives graph searches what they need of an index: records of its graph by id, and by the nearness of their texts."""

from collections.abc import Collection, Sequence
from typing import Protocol

from kraq_dspy.ports import Filters, Vectors
from kraq_dspy.records import Chunk, Community, Entity, Relationship, Summary


class NearestTexts(Protocol):
    """Finds records by the embeddings of their texts."""

    def __call__(
        self,
        text: str,
        k: int,
        *,
        exclude: Collection[str] = (),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[tuple[str, float]]:
        """Up to `k` (record id, cosine), best first; ties always in the same order."""


class GraphSource(Protocol):
    """The graph of an index, by id."""

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """In the order of `ids`. Raises UnknownRecordError."""

    def links(self, entity_ids: Sequence[str]) -> list[Relationship]:
        """Every relationship with an end among `entity_ids`, once."""

    def community_of(self, entity_id: str, level: int) -> str | None:
        """The narrowest community of the entity, at `level` or broader, that has a report; None where none has."""

    def reports(self, community_ids: Sequence[str]) -> list[tuple[Community, Summary]]:
        """In the order of `community_ids`. Raises UnknownRecordError."""

    def report_ids_at(self, level: int) -> frozenset[str]:
        """The communities of the partition at `level` (its own, and the leaves above it) that have a report."""

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """In the order of `ids`. Raises UnknownRecordError."""
