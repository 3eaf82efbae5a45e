"""Makes a town of five entities in a real index: two communities, one of them with a part of its own.

Rhine - Elbe - Blue - Keep - Choir; {Rhine, Elbe, Blue} with the part {Rhine, Elbe}, and {Keep, Choir}. The part {Blue}
has no report.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.indexing.prepare.graph import IndexGraph, entity_vectors, report_vectors
from kraq_dspy.records import Chunk, Community, Entity, Finding, Relationship, Summary, content_id
from kraq_dspy.settings import Settings
from tests.conftest import KeywordEmbedder

ENTITIES = {
    "Rhine": "a river",
    "Elbe": "a river with a bridge",
    "Blue": "a bridge",
    "Keep": "a castle with music",
    "Choir": "music",
}
MENTIONS = {"Rhine": ["rivers"], "Elbe": ["blank", "rivers"], "Blue": ["span"], "Keep": ["keep"], "Choir": ["keep"]}
LINKS = [("Rhine", "Elbe", 1.0, "rivers"), ("Elbe", "Blue", 2.0, "span"), ("Blue", "Keep", 1.0, "keep"),
         ("Keep", "Choir", 3.0, "keep")]  # fmt: skip
TEXTS = {
    "rivers": "The Rhine and the Elbe are rivers.",
    "span": "The Blue crosses the Elbe.",
    "keep": "A choir sings in the Keep.",
    "blank": "Nothing of note, but for the Elbe.",
}
COMMUNITIES = {
    "water": (0, None, ["Rhine", "Elbe", "Blue"]),
    "hill": (0, None, ["Keep", "Choir"]),
    "rivers": (1, "water", ["Rhine", "Elbe"]),
    "bridges": (1, "water", ["Blue"]),
}
REPORTS = {
    "water": ("Water", "A river, and a bridge over it.", (Finding("A river", "A river and more."),)),
    "hill": ("Hill", "Music in the castle.", (Finding("The choir", "It sings."),)),
    "rivers": ("Rivers", "Two names of a river.", ()),
}


class Town:
    """The index, what is searched in it, and ids by the names above."""

    def __init__(self, index: Index, embedder: KeywordEmbedder) -> None:
        self.index = index
        self.embedder = embedder
        self.graph = IndexGraph(index)
        self.entities: TextVectors = entity_vectors(index, embedder)
        self.reports: TextVectors = report_vectors(index, embedder)

    @staticmethod
    def entity(name: str) -> str:
        return content_id("entity", name)

    @staticmethod
    def chunk(name: str) -> str:
        return content_id("chunk", name)

    @staticmethod
    def community(name: str) -> str:
        return content_id("community", name)


@pytest.fixture
def town(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[Town]:
    embedder = keyword_embedder("river", "bridge", "castle", "music")
    with Index.create(
        tmp_path / "town.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=embedder.dimension
    ) as index:
        index.add(Chunk(Town.chunk(name), name, 0, 0, len(text), text, 9) for name, text in TEXTS.items())
        index.add(
            Entity(Town.entity(name), name, "thing", description, (name,), tuple(map(Town.chunk, MENTIONS[name])))
            for name, description in ENTITIES.items()
        )
        index.add(
            Relationship(
                content_id("link", one, two), Town.entity(one), Town.entity(two), "meets", "", weight, (Town.chunk(at),)
            )
            for one, two, weight, at in LINKS
        )
        index.add(
            Community(
                id=Town.community(name),
                level=level,
                parent_id=Town.community(parent) if parent else None,
                child_ids=tuple(Town.community(child) for child in COMMUNITIES if COMMUNITIES[child][1] == name),
                entity_ids=tuple(map(Town.entity, members)),
                relationship_ids=(),
                chunk_ids=(),
            )
            for name, (level, parent, members) in COMMUNITIES.items()
        )
        index.add(Summary(Town.community(name), *fields) for name, fields in REPORTS.items())
        yield Town(index, embedder)
