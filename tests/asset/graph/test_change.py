"""What a change makes of a graph is what the whole, made anew, would have."""

import io
import random

import pytest

from kraq_dspy.asset.graph.build import Graph, ResolvedMentions
from kraq_dspy.asset.graph.candidates import propose_merges
from kraq_dspy.asset.graph.change import graph_change, keeps_order
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.resolve import entity_id_of, resolve_entities
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Extraction

NAMES = ["A", "the A", "B", "b's", "C D", "C-D", " ", "Ann Deursen Lee", "Ann Deusen Lee", "UBA", "x"]
NAMES += ["Universidad Buenos Aires", "Cd", "c d"]
TEXTS = ["", "One.", "Two. One.", "three", "Universidad Buenos Aires (UBA) is."]


def extraction(chunk_id: str, rng: random.Random) -> Extraction:
    def name() -> str:
        return rng.choice(NAMES)

    def text() -> str:
        return rng.choice(TEXTS)

    return Extraction(
        chunk_id,
        tuple(ExtractedEntity(name(), rng.choice("pq "), text()) for _ in range(rng.randrange(3))),
        tuple(
            ExtractedRelationship(name(), name(), rng.choice(["k", "K.", ""]), text()) for _ in range(rng.randrange(3))
        ),
        tuple(ExtractedClaim(name(), rng.choice(["One.", "one", "2"]), rng.choice(["", *NAMES])) for _ in range(2)),
    )


def resolved(mentions: Mentions) -> ResolvedMentions:
    """By what is certain."""
    names = mentions.names()
    certain = [one for one in propose_merges(names, mentions.introduced_acronyms()) if one.certain]
    return ResolvedMentions.of(mentions, resolve_entities(names, certain))


class Applied:
    """A graph, and the changes that it was given."""

    def __init__(self, graph: Graph) -> None:
        self.entities = {entity.id: entity for entity in graph.entities}
        self.relationships = {link.id: link for link in graph.relationships}
        self.claims = {
            claim.chunk_id: tuple(c for c in graph.claims if c.chunk_id == claim.chunk_id) for claim in graph.claims
        }

    def apply(self, before: ResolvedMentions, after: ResolvedMentions) -> None:
        change = graph_change(before, after)
        for id in change.gone_entities:
            del self.entities[id]
        for id in change.gone_relationships:
            self.relationships.pop(id, None)
        self.entities |= {entity.id: entity for entity in change.entities}
        self.relationships |= {link.id: link for link in change.relationships}
        self.claims |= change.claims


@pytest.mark.parametrize("seed", range(40))
def test_changes_lead_to_the_graph_that_is_made_of_the_chunks_then(seed: int) -> None:
    rng = random.Random(seed)
    chunks = {id: extraction(id, rng) for id in (f"c{number:02}" for number in rng.sample(range(40), rng.randrange(8)))}
    before = resolved(Mentions.of(chunks[id] for id in sorted(chunks)))
    applied = Applied(before.graph())
    for _ in range(4):
        known = set(chunks)
        for id in rng.sample(sorted(chunks), min(len(chunks), rng.randrange(3))):
            del chunks[id]
        new = {f"c{rng.randrange(40):02}" for _ in range(rng.randrange(3))} - known
        chunks |= {id: extraction(id, rng) for id in sorted(new)}
        order = sorted(chunks)
        assert keeps_order(before.mentions.chunk_ids, order)

        file = io.BytesIO()
        before.write(file)
        file.seek(0)
        before = ResolvedMentions.read(file)
        after = resolved(before.mentions.changed(order, [chunks[id] for id in sorted(new)]))
        applied.apply(before, after)

        anew = resolved(Mentions.of(chunks[id] for id in order))
        graph = anew.graph()
        assert after.mentions.names() == anew.mentions.names()
        assert after.merges == graph.merges
        assert applied.entities == {entity.id: entity for entity in graph.entities}
        assert applied.relationships == {link.id: link for link in graph.relationships}
        assert [claim for id in order for claim in applied.claims.get(id, ())] == list(graph.claims)
        before = after


def test_only_what_is_said_of_the_names_of_changed_chunks_is_made() -> None:
    first, second, third = (
        Extraction(chunk, (), (ExtractedRelationship(source, target, "met", ""),))
        for chunk, source, target in (("1", "Ann", "Bob"), ("2", "Bob", "Cid"), ("3", "Cid", "Dan"))
    )
    before = resolved(Mentions.of([first, second]))
    change = graph_change(before, resolved(before.mentions.changed(["2", "3"], [third])))
    assert change.gone_entities == {entity_id_of("ann")}
    assert [(entity.name, entity.degree) for entity in sorted(change.entities, key=lambda e: e.name)] == [
        ("Bob", 1), ("Cid", 2), ("Dan", 1)
    ]  # fmt: skip
    assert [link.chunk_ids for link in change.relationships] == [("3",)]
    assert len(change.gone_relationships) == 1
    assert change.weight == 2
    assert graph_change(before, before) == graph_change(before, resolved(before.mentions.changed(["1", "2"], [])))
    assert graph_change(before, before).entities == ()


def test_an_object_that_becomes_an_entity_changes_the_claims_that_name_it() -> None:
    claim = Extraction("1", (), (), (ExtractedClaim("Ann", "Ann admires Bob.", "Bob"),))
    other = Extraction("2", (ExtractedEntity("Bob", "person", "Bob is a clerk."),))
    before = resolved(Mentions.of([claim]))
    change = graph_change(before, resolved(before.mentions.changed(["1", "2"], [other])))
    assert {id: [c.object_id for c in claims] for id, claims in change.claims.items()} == {"1": [entity_id_of("bob")]}
    assert {entity.name for entity in change.entities} == {"Ann", "Bob"}


def test_chunks_that_changed_places_are_told() -> None:
    assert keeps_order(["a", "b", "c"], ["new", "a", "c"])
    assert not keeps_order(["a", "b", "c"], ["b", "a"])
