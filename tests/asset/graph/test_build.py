"""Tests that extractions become one graph in which all that is said of one thing stands together."""

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from hypothesis import given, strategies as st

from kraq_dspy.asset.graph.build import Graph, ResolvedMentions, apply_descriptions, join_descriptions
from kraq_dspy.asset.graph.candidates import propose_merges
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.resolve import entity_id_of, resolve_entities
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Extraction

FIRST = Extraction(
    "chunk-1",
    entities=(
        ExtractedEntity("Ebenezer Scrooge", "person", "Scrooge is a miser."),
        ExtractedEntity("Bob Cratchit", "person", "Bob Cratchit is a clerk."),
    ),
    relationships=(
        ExtractedRelationship("Ebenezer Scrooge", "Bob Cratchit", "employs", "Scrooge employs Bob Cratchit."),
        ExtractedRelationship("Ebenezer Scrooge", "Marley", "was partner of", "Marley was Scrooge's partner."),
    ),
    claims=(ExtractedClaim("Ebenezer Scrooge", "Scrooge lives alone."), ExtractedClaim("London", "London is foggy.")),
)
SECOND = Extraction(
    "chunk-2",
    entities=(
        ExtractedEntity("Bob Cratchit's", "clerk", "Bob Cratchit is a clerk. He has six children."),
        ExtractedEntity("The Ebenezer Scrooge", "person", "is a miser"),
        ExtractedEntity(" ", "person", "nobody"),
    ),
    relationships=(
        ExtractedRelationship("Ebenezer Scrooge", "Bob Cratchit", "Employs", ""),
        ExtractedRelationship("Bob Cratchit", "Ebenezer Scrooge", "fears", "Bob fears him."),
        ExtractedRelationship("Bob Cratchit", "bob cratchit", "is", "Bob is Bob."),
        ExtractedRelationship("Bob Cratchit", "", "knows", "nobody"),
    ),
    claims=(ExtractedClaim("ebenezer scrooge", "Scrooge  lives alone."), ExtractedClaim("Scrooge", " ")),
)
SCROOGE, BOB, MARLEY, LONDON = (entity_id_of(key) for key in ("ebenezer scrooge", "bob cratchit", "marley", "london"))


def build_graph(extractions: Iterable[Extraction]) -> Graph:
    """Names resolved by what is certain."""
    mentions = Mentions.of(extractions)
    certain = [candidate for candidate in propose_merges(mentions.names()) if candidate.certain]
    return ResolvedMentions(mentions, resolve_entities(mentions.names(), certain)).graph()


def test_statements_about_one_thing_come_together() -> None:
    graph = build_graph([FIRST, SECOND])
    entities = {entity.id: entity for entity in graph.entities}
    assert set(entities) == {SCROOGE, BOB, MARLEY, LONDON}
    bob = entities[BOB]
    assert (bob.name, bob.type, bob.chunk_ids, bob.degree) == ("Bob Cratchit", "clerk", ("chunk-1", "chunk-2"), 1)
    assert bob.names == ("Bob Cratchit", "Bob Cratchit's", "bob cratchit")
    assert bob.description == "Bob Cratchit is a clerk. He has six children."
    assert graph.descriptions[BOB] == ("Bob Cratchit is a clerk.", "Bob Cratchit is a clerk. He has six children.")
    assert entities[SCROOGE].description == "Scrooge is a miser."  # what the second chunk says is contained in it
    assert entities[SCROOGE].degree == 2


def test_one_relationship_for_each_direction_and_predicate_weighted_by_its_statements() -> None:
    graph = build_graph(iter([FIRST, SECOND]))
    links = {(link.source_id, link.predicate, link.target_id): link for link in graph.relationships}
    assert set(links) == {(SCROOGE, "Employs", BOB), (SCROOGE, "was partner of", MARLEY), (BOB, "fears", SCROOGE)}
    employs = links[SCROOGE, "Employs", BOB]
    assert (employs.weight, employs.chunk_ids, employs.description) == (
        2.0, ("chunk-1", "chunk-2"), "Scrooge employs Bob Cratchit.",
    )  # fmt: skip


def test_ends_and_subjects_that_no_chunk_lists_become_entities_described_by_what_names_them() -> None:
    entities = {entity.id: entity for entity in build_graph([FIRST, SECOND]).entities}
    marley, london = entities[MARLEY], entities[LONDON]
    assert (marley.type, marley.description, marley.degree) == ("", "Marley was Scrooge's partner.", 1)
    assert (london.type, london.description, london.degree) == ("", "London is foggy.", 0)


def test_claims_attach_to_what_their_subject_means_each_said_once_in_a_chunk() -> None:
    claims = build_graph([FIRST, SECOND, SECOND]).claims
    assert [(claim.entity_id, claim.statement, claim.chunk_id) for claim in claims] == [
        (SCROOGE, "Scrooge lives alone.", "chunk-1"),
        (LONDON, "London is foggy.", "chunk-1"),
        (SCROOGE, "Scrooge lives alone.", "chunk-2"),
    ]
    assert len({claim.id for claim in claims}) == 3


def test_a_claim_may_be_about_what_links_two_entities_by_any_of_their_names() -> None:
    extraction = (
        ExtractedClaim("Ebenezer Scrooge", "Scrooge underpays Bob.", "Bob Cratchit's"),
        ExtractedClaim("Ebenezer Scrooge", "Scrooge talks to himself.", "The Ebenezer Scrooge"),
        ExtractedClaim("Ebenezer Scrooge", "Scrooge knows a Nobody.", "Nobody"),
    )
    graph = build_graph([FIRST, SECOND, Extraction("chunk-3", claims=extraction)])
    assert [(c.entity_id, c.object_id, c.pair) for c in graph.claims if c.chunk_id == "chunk-3"] == [
        (SCROOGE, BOB, frozenset((BOB, SCROOGE))),
        (SCROOGE, None, None),  # of itself
        (SCROOGE, None, None),  # a claim's object alone makes no entity
    ]
    assert {entity.id for entity in graph.entities} == {SCROOGE, BOB, MARLEY, LONDON}


def test_a_confirmed_merge_joins_what_was_said_of_both() -> None:
    chunks = [
        Extraction("a", (ExtractedEntity("UBA", "", "UBA is large."),), (ExtractedRelationship("UBA", "X", "of", ""),)),
        Extraction("b", (ExtractedEntity("Universidad de Buenos Aires", "school", "It is old."),)),
    ]
    mentions = Mentions.of(chunks)
    accepted = propose_merges(mentions.names())
    graph = ResolvedMentions(mentions, resolve_entities(mentions.names(), accepted)).graph()
    uba = next(entity for entity in graph.entities if entity.name == "UBA")
    assert (uba.names, uba.type, uba.description, uba.chunk_ids) == (
        ("UBA", "Universidad de Buenos Aires"), "school", "UBA is large. It is old.", ("a", "b"),
    )  # fmt: skip
    assert [merge.method for merge in graph.merges] == ["confirmed"]


def test_what_a_description_introduces_is_found_and_the_first_description_of_a_name_is_told() -> None:
    chunks = [
        Extraction("a", (ExtractedEntity("UBA", "", " A school. "), ExtractedEntity("UBA", "", "Large."))),
        Extraction("b", (ExtractedEntity("Bernardo Houssay", "", "He led the Universidad de Buenos Aires (UBA)."),)),
    ]
    mentions = Mentions.of(chunks)
    assert ("uba", "universidad de buenos aires") in mentions.introduced_acronyms()
    assert mentions.descriptions(["UBA", "Peru"]) == {"UBA": "A school."}


def test_better_descriptions_replace_the_joined_ones_of_the_given_ids() -> None:
    graph = build_graph([FIRST, SECOND])
    better = apply_descriptions(graph, {BOB: " A clerk with six children. ", SCROOGE: " "})
    descriptions = {entity.id: entity.description for entity in better.entities}
    assert descriptions[BOB] == "A clerk with six children."
    assert descriptions[SCROOGE] == "Scrooge is a miser."
    assert better.descriptions == graph.descriptions


def test_nothing_extracted_gives_an_empty_graph() -> None:
    assert build_graph([]) == Graph()
    assert build_graph([Extraction("a")]) == Graph()


def test_joined_descriptions_say_every_sentence_once() -> None:
    assert join_descriptions(["A is red. B is blue.", "b is blue", "C is a thing. A is red!"]) == (
        "A is red. B is blue. C is a thing."
    )
    assert join_descriptions(["He is a clerk", "Mr. Bob Cratchit, he is a clerk in London."]) == (
        "Mr. Bob Cratchit, he is a clerk in London."
    )
    assert join_descriptions(["東京は大きい。人が多い。", "人が多い。"]) == "東京は大きい。 人が多い。"
    assert join_descriptions(["", "  "]) == ""


@given(st.lists(st.lists(st.sampled_from(["ash", "bee", "cat"]), min_size=1, max_size=5).map(" ".join), max_size=12))
def test_a_sentence_is_left_out_where_another_one_has_its_words_in_a_row(said: list[str]) -> None:
    distinct = list(dict.fromkeys(said))
    kept = [each for each in distinct if sum(f" {each} " in f" {other} " for other in distinct) == 1]
    expected = distinct if len(distinct) == 1 else kept
    assert join_descriptions(f"{each}." for each in said) == " ".join(f"{each}." for each in expected)


def test_a_part_of_a_word_is_no_containment() -> None:
    assert join_descriptions(["art", "Bart is an artist"]) == "art Bart is an artist"


names = st.sampled_from(["A", "the A", "B", "b's", "C D", "C-D", " "])
texts = st.sampled_from(["", "One.", "Two. One.", "three"])
extractions = st.lists(
    st.tuples(
        st.lists(st.builds(ExtractedEntity, names, texts, texts), max_size=3).map(tuple),
        st.lists(st.builds(ExtractedRelationship, names, names, texts, texts), max_size=3).map(tuple),
        st.lists(st.builds(ExtractedClaim, names, texts), max_size=2).map(tuple),
    ),
    max_size=5,
).map(lambda drawn: [Extraction(f"chunk-{number}", *parts) for number, parts in enumerate(drawn)])


@given(extractions, st.randoms(use_true_random=False))
def test_the_graph_holds_together_and_only_texts_and_order_depend_on_the_order_of_chunks(
    drawn: list[Extraction], rng: random.Random
) -> None:
    graph = build_graph(drawn)
    ids = {entity.id for entity in graph.entities}
    assert len(ids) == len(graph.entities)
    for link in graph.relationships:
        assert {link.source_id, link.target_id} <= ids
        assert link.source_id != link.target_id
    assert {claim.entity_id for claim in graph.claims} <= ids
    assert set(graph.descriptions) <= ids | {link.id for link in graph.relationships}
    assert all(len(set(ways)) > 1 for ways in graph.descriptions.values())
    shuffled = build_graph(rng.sample(drawn, len(drawn)))

    def facts(graph: Graph) -> Iterator[object]:
        yield from ((e.id, e.name, e.type, e.names, e.degree, set(e.chunk_ids)) for e in graph.entities)
        yield from ((r.id, r.predicate, r.weight, set(r.chunk_ids)) for r in graph.relationships)
        yield {claim.id for claim in graph.claims}
        yield graph.merges

    assert list(facts(shuffled)) == list(facts(graph))


def test_real_triples_make_a_graph_without_dangling_ends(shared_data: Path) -> None:
    def read() -> Iterator[Extraction]:
        with gzip.open(shared_data / "musique" / "triples.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                yield Extraction(
                    row["passage_id"],
                    tuple(ExtractedEntity(name, "", "") for name in row["entities"]),
                    tuple(ExtractedRelationship(s, t, p, f"{s} {p} {t}.") for s, p, t in row["triples"]),
                )

    graph = build_graph(read())
    ids = {entity.id for entity in graph.entities}
    assert 18_000 < len(ids) < 19_277  # of 19,277 spellings
    assert all(link.source_id in ids and link.target_id in ids for link in graph.relationships)
    statements = sum(link.weight for link in graph.relationships)
    assert 17_000 < statements <= 17_234  # self-loops are dropped
