"""Tests the communities of small graphs whose parts a reader can see."""

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import igraph
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.graph.communities import communities_at, find_communities
from kraq_dspy.records import Community, Entity, Relationship, content_id
from kraq_dspy.settings import OF_CDLIB, CommunitySettings


def entity(name: str, *chunks: str) -> Entity:
    return Entity(name, name, "", "", (name,), chunks)


def link(source: str, target: str, weight: float = 1.0, chunks: Sequence[str] = ()) -> Relationship:
    return Relationship(f"{source}-{target}", source, target, "knows", "", weight, tuple(chunks))


ALGORITHMS = ("leiden", "louvain")  # by graspologic-native, and by igraph


def any_graph() -> tuple[list[Entity], list[Relationship]]:
    draw = random.Random(3)
    entities = [entity(f"{n:03}") for n in range(200)]
    pairs = [draw.sample(range(200), 2) for _ in range(400)]
    return entities, [replace(link(f"{a:03}", f"{b:03}"), id=f"{k:03}") for k, (a, b) in enumerate(pairs)]


# Two triangles, A B C and D E F, held together by C-D; G stands alone.
ENTITIES = [entity(name, f"chunk of {name}") for name in "ABCDEFG"]
LINKS = [
    link("A", "B", chunks=["2"]), link("B", "C", chunks=["10"]), link("C", "A", chunks=["2", "3"]),
    link("D", "E"), link("E", "F"), link("F", "D"), link("C", "D", 0.5, chunks=["9"]),
]  # fmt: skip


def members(communities: Sequence[Community]) -> list[str]:
    return ["".join(community.entity_ids) for community in communities]


def test_two_triangles_and_a_loner_are_three_communities() -> None:
    communities = find_communities(ENTITIES, LINKS, CommunitySettings())
    assert sorted(members(communities)) == ["ABC", "DEF", "G"]
    assert [len(community.entity_ids) for community in communities] == [3, 3, 1]
    assert {(community.level, community.parent_id, community.child_ids) for community in communities} == {(0, None, ())}


def test_a_community_names_its_inner_relationships_and_their_chunks_in_reading_order() -> None:
    communities = find_communities(
        ENTITIES, LINKS, CommunitySettings(), dict.fromkeys(["10", "9", "3", "2"], "document")
    )
    abc = next(community for community in communities if community.entity_ids == ("A", "B", "C"))
    assert abc.id == content_id("community", "A", "B", "C")
    assert abc.relationship_ids == ("A-B", "B-C", "C-A")
    assert abc.chunk_ids == ("10", "3", "2")
    loner = next(community for community in communities if community.entity_ids == ("G",))
    assert (loner.relationship_ids, loner.chunk_ids) == ((), ("chunk of G",))


def test_both_directions_of_a_pair_add_up() -> None:
    # A-B-C-D in a row: the middle link alone is the weakest, both its directions together are the strongest.
    row = [link("A", "B", 3), link("B", "C", 2), link("C", "D", 3)]
    entities = [entity(name) for name in "ABCD"]
    assert sorted(members(find_communities(entities, row, CommunitySettings()))) == ["AB", "CD"]
    back = [*row, replace(link("C", "B", 60), id="back")]
    assert "BC" in "".join(sorted(members(find_communities(entities, back, CommunitySettings()))))


def ring_of_cliques(cliques: int, size: int) -> tuple[list[Entity], list[Relationship]]:
    names = [[f"{c:02}{m:02}" for m in range(size)] for c in range(cliques)]
    links = [link(a, b) for clique in names for a, b in itertools.combinations(clique, 2)]
    links += [link(names[c][0], names[(c + 1) % cliques][1]) for c in range(cliques)]
    return [entity(name) for clique in names for name in clique], links


def test_a_community_above_the_size_is_split_and_none_is_repeated_deeper() -> None:
    entities, links = ring_of_cliques(40, 4)
    sizes = CommunitySettings(max_size=6, max_depth=6)
    communities = find_communities(entities, links, sizes)
    assert {community.level for community in communities} == {0, 1}
    assert len({community.id for community in communities}) == len(communities)
    by_id = {community.id: community for community in communities}
    for community in communities:
        children = [by_id[child_id] for child_id in community.child_ids]
        assert all(child.parent_id == community.id and child.level == community.level + 1 for child in children)
        if children:
            below = sorted(itertools.chain(*(child.entity_ids for child in children)))
            assert tuple(below) == community.entity_ids
            assert len(community.entity_ids) > 6
            assert {id for child in children for id in child.relationship_ids} <= set(community.relationship_ids)


# In the document "long", A-B stand in its chunk 1, C-D in its chunk 2 and E in its chunk 3; F-G reach over two chunks.
# H and I stand in the only chunk of "short", J alone in another document.
PASSAGES = {"1": "long", "2": "long", "3": "long", "4": "long", "5": "short", "6": "other"}
LONG = [
    *(entity(name, chunk) for name, chunk in zip("ABCDEHIJ", "11223556", strict=True)),
    entity("F", "3"), entity("G", "3", "4"),
]  # fmt: skip
LONG_LINKS = [link("A", "B", chunks="1"), link("C", "D", chunks="2"), link("F", "G", chunks="3")]


def test_broadest_communities_of_one_chunk_each_are_one_for_each_document() -> None:
    communities = find_communities(LONG, LONG_LINKS, CommunitySettings(), PASSAGES)
    assert members(communities) == [
        "ABCDE",
        *sorted(["FG", "HI"], key=lambda each: content_id("community", *each)),
        "J",
    ]
    assert communities[0].chunk_ids == ("1", "2", "3"), "that of the entity without a link, too"
    assert {community.level for community in communities} == {0}


def test_those_are_found_again_below_where_a_document_has_many() -> None:
    communities = find_communities(LONG, LONG_LINKS, CommunitySettings(max_size=3), PASSAGES)
    assert members(communities)[0] == "ABCDE"
    assert sorted(members([each for each in communities if each.level == 1])) == ["AB", "CD", "E"]


def test_without_documents_or_where_it_is_switched_off_nothing_is_put_together() -> None:
    pieces = ["AB", "CD", "E", "FG", "H", "I", "J"]
    assert sorted(members(find_communities(LONG, LONG_LINKS, CommunitySettings()))) == pieces
    plain = CommunitySettings(by_document=False)
    assert sorted(members(find_communities(LONG, LONG_LINKS, plain, PASSAGES))) == pieces


def test_a_followed_change_puts_new_pieces_of_a_document_together_and_leaves_the_former_ones() -> None:
    plain = CommunitySettings(by_document=False)
    former = find_communities(LONG, LONG_LINKS, plain, PASSAGES)
    new = [entity("K", "7"), entity("L", "8"), entity("M", "1"), entity("N", "9")]
    passages = {**PASSAGES, "7": "new", "8": "new", "9": "third"}
    links = [*LONG_LINKS, link("M", "A", chunks="1")]
    communities = find_communities([*LONG, *new], links, CommunitySettings(), passages, former)
    assert sorted(members(communities)) == ["ABM", "CD", "E", "FG", "H", "I", "J", "KL", "N"]


def former(*names: str) -> list[Community]:
    """Broadest communities of the entities with these letters."""
    return [Community(content_id("community", *each), 0, None, (), tuple(each), (), ()) for each in names]


@pytest.mark.parametrize(
    ("max_size", "found"), [(5, ["ABC", "ABCDEF", "DEF", "G"]), (6, ["ABCDEF", "G"]), (7, ["ABCDEF", "G"])]
)
def test_a_community_of_the_largest_size_is_not_split_and_one_above_it_is(max_size: int, found: list[str]) -> None:
    settings = CommunitySettings(max_size=max_size)
    assert sorted(members(find_communities(ENTITIES, LINKS, settings, former=former("ABCDEF", "G")))) == found


def test_a_small_one_of_the_broadest_level_comes_before_a_larger_one_inside_another() -> None:
    found = find_communities(ENTITIES, LINKS, CommunitySettings(max_size=5), former=former("ABCDEF", "G"))
    assert members(found)[:2] == ["ABCDEF", "G"]
    assert sorted(members(found)[2:]) == ["ABC", "DEF"]


def test_narrower_ones_inside_a_community_are_named_largest_first() -> None:
    entities = [*ENTITIES, entity("H")]
    links = [*LINKS, link("H", "D"), link("H", "E"), link("H", "F")]
    broadest = find_communities(entities, links, CommunitySettings(max_size=6), former=former("ABCDEFH", "G"))[0]
    assert broadest.child_ids == tuple(content_id("community", *names) for names in ("DEFH", "ABC"))


@pytest.mark.parametrize("algorithm", ["leiden", "louvain"])
@pytest.mark.parametrize(("middle", "found"), [(1, ["AB", "CD"]), (10, ["ABCD"])])
def test_weights_decide_what_stays_together(algorithm: str, middle: float, found: list[str]) -> None:
    in_a_row = [link("A", "B"), link("B", "C", middle), link("C", "D")]
    communities = CommunitySettings(algorithm=algorithm)  # type: ignore[arg-type]
    assert sorted(members(find_communities([entity(name) for name in "ABCD"], in_a_row, communities))) == found


@pytest.mark.parametrize(("between", "found"), [(1, ["ABC", "DEF"]), (5, ["ABCDEF"])])
def test_weights_decide_for_infomap_too(between: float, found: list[str]) -> None:
    links = [*LINKS[:6], link("C", "D", between)]
    assert sorted(members(find_communities(ENTITIES[:6], links, CommunitySettings(algorithm="infomap")))) == found


@pytest.mark.parametrize(
    ("resolution", "found"), [(0, ["ABCDEF", "G"]), (0.05, ["ABCDEF", "G"]), (1.0, ["ABC", "DEF", "G"])]
)
def test_a_lower_resolution_makes_larger_communities(resolution: float, found: list[str]) -> None:
    settings = CommunitySettings(resolution=resolution)
    assert sorted(members(find_communities(ENTITIES, LINKS, settings))) == found


@pytest.mark.parametrize(("max_depth", "levels"), [(1, {0}), (2, {0, 1}), (3, {0, 1})])
def test_the_deepest_level_is_one_below_the_depth(max_depth: int, levels: set[int]) -> None:
    settings = CommunitySettings(max_size=5, max_depth=max_depth)
    communities = find_communities(ENTITIES, LINKS, settings, former=former("ABCDEF", "G"))
    assert {community.level for community in communities} == levels


@pytest.mark.parametrize(
    ("links", "found"),
    [
        ([("G", "A", 2.0), ("G", "D", 1.0)], ["ABCG", "DEF"]),
        ([("G", "A", 1.0), ("D", "G", 2.0)], ["DEFG", "ABC"]),
        ([("G", "A", 1.0), ("G", "B", 1.0), ("G", "D", 1.5)], ["ABCG", "DEF"]),  # their sum decides
        ([("G", "A", 1.0), ("A", "G", 1.0), ("G", "D", 1.5)], ["ABCG", "DEF"]),  # of both directions
        ([("G", "A", 1.0), ("G", "D", 1.2), ("G", "E", 1.2)], ["DEFG", "ABC"]),
    ],
)
def test_a_new_entity_joins_the_community_that_it_is_linked_to_most(
    links: list[tuple[str, str, float]], found: list[str]
) -> None:
    new = [link(source, target, weight) for source, target, weight in links]
    communities = find_communities(ENTITIES, [*LINKS, *new], CommunitySettings(), former=former("ABC", "DEF"))
    assert members(communities) == found


def test_what_is_linked_to_a_new_entity_alone_follows_it() -> None:
    entities = [*ENTITIES, entity("H", "chunk of H")]
    new = [link("G", "D", 3.0), link("G", "A", 1.0), link("H", "G", 0.1)]
    communities = find_communities(entities, [*LINKS, *new], CommunitySettings(), former=former("ABC", "DEF"))
    assert members(communities) == ["DEFGH", "ABC"]


def test_of_communities_that_a_new_entity_is_linked_to_alike_the_first_by_id_gets_it() -> None:
    first, second = sorted(("ABC", "DEF"), key=lambda letters: content_id("community", *letters))
    new = [link("G", "A"), link("G", "D")]
    for order in (("ABC", "DEF"), ("DEF", "ABC")):
        communities = find_communities(ENTITIES, [*LINKS, *new], CommunitySettings(), former=former(*order))
        assert members(communities) == [f"{first}G", second]


def test_max_depth_bounds_the_levels() -> None:
    entities, links = ring_of_cliques(40, 4)
    communities = find_communities(entities, links, CommunitySettings(max_size=1, max_depth=1))
    assert {community.level for community in communities} == {0}


def test_what_leiden_does_not_split_stays_whole() -> None:
    entities, links = ring_of_cliques(1, 12)
    clique = [each for each in links if each.source_id != each.target_id]
    communities = find_communities(entities, clique, CommunitySettings(max_size=10))
    assert [len(community.entity_ids) for community in communities] == [12]


def test_a_graph_without_relationships_is_communities_of_one_and_an_empty_one_has_none() -> None:
    communities = find_communities([entity("A"), entity("B")], [], CommunitySettings())
    assert sorted(members(communities)) == ["A", "B"]
    assert find_communities([], [], CommunitySettings()) == []


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_not_a_positive_number_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"A-B.*positive"):
        find_communities([entity("A"), entity("B")], [link("A", "B", weight)], CommunitySettings())


def test_an_end_that_is_no_entity_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'Z'"):
        find_communities([entity("A")], [link("A", "Z")], CommunitySettings())


def test_a_negative_level_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        communities_at([], -1)


graphs = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.just([entity(f"{i:02}", f"c{i % 9}") for i in range(n)]),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 5)), max_size=60).map(
            lambda rows: [
                Relationship(f"{k}", f"{a:02}", f"{b:02}", "", "", float(w), (f"c{k}",))
                for k, (a, b, w) in enumerate(rows)
                if a != b
            ]
        ),
    )
)


@given(graphs, st.integers(1, 8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_level_is_a_partition_and_the_order_of_the_input_does_not_matter(
    graph: tuple[list[Entity], list[Relationship]], max_size: int, max_depth: int, rng: random.Random
) -> None:
    entities, links = graph
    sizes = CommunitySettings(max_size=max_size, max_depth=max_depth)
    documents = {f"c{n}": f"d{n % 3}" for n in range(9)}
    communities = find_communities(entities, links, sizes, documents)
    for level in range(max_depth + 1):
        covered = [id for community in communities_at(communities, level) for id in community.entity_ids]
        assert sorted(covered) == [each.id for each in entities]
    assert len({community.id for community in communities}) == len(communities)
    assert communities == sorted(communities, key=lambda c: (c.level, -len(c.entity_ids), c.id))
    shuffled = rng.sample(entities, len(entities)), rng.sample(links, len(links))
    assert find_communities(*shuffled, sizes, documents) == communities


SCRIPT = """
import itertools, random, sys
from kraq_dspy.settings import CommunitySettings
from kraq_dspy.asset.graph.build import ResolvedMentions
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.asset.graph.candidates import propose_merges
from kraq_dspy.asset.graph.resolve import resolve_entities
from kraq_dspy.records import *
draw = random.Random(7)
names = [f"Name of thing {n}" for n in range(150)] + ["The Beehive", "Bee-Hive", "UBA"]
chunks = [
    Extraction(
        f"c{n}",
        tuple(ExtractedEntity(draw.choice(names), draw.choice("ab"), f"Text {draw.randrange(9)}.") for _ in range(3)),
        tuple(ExtractedRelationship(*draw.sample(names, 2), draw.choice("pq"), "") for _ in range(4)),
    )
    for n in range(120)
]
mentions = Mentions.of(chunks)
certain = [each for each in propose_merges(mentions.names()) if each.certain]
graph = ResolvedMentions(mentions, resolve_entities(mentions.names(), certain)).graph()
found = find_communities(graph.entities, graph.relationships, CommunitySettings(max_size=5))
print(content_id(repr(graph), repr(found)), len(found))
"""


def test_every_process_finds_the_same_whatever_its_hash_seed(capsys: pytest.CaptureFixture[str]) -> None:
    exec(SCRIPT, {})  # in this process, whose hashes are of another seed
    elsewhere = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout == capsys.readouterr().out != ""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_threads_find_the_same(algorithm: str) -> None:
    entities, links = ring_of_cliques(30, 4)
    settings = CommunitySettings(max_size=3, algorithm=algorithm)
    alone = find_communities(entities, links, settings)
    with ThreadPoolExecutor(8) as pool:
        communities = list(pool.map(lambda _: find_communities(entities, links, settings), range(16)))
    assert all(each == alone for each in communities)


def test_igraph_draws_from_python_again_afterwards() -> None:
    find_communities(*ring_of_cliques(30, 4), CommunitySettings(algorithm="louvain"))
    random.seed(5)
    state = random.getstate()
    first = igraph.Graph.Erdos_Renyi(n=30, m=40).get_edgelist()
    assert random.getstate() != state
    random.seed(5)
    assert igraph.Graph.Erdos_Renyi(n=30, m=40).get_edgelist() == first


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_finding_communities_leaves_pythons_random_numbers_alone(algorithm: str) -> None:
    random.seed(1)
    state = random.getstate()
    find_communities(ENTITIES, LINKS, CommunitySettings(algorithm=algorithm))
    assert random.getstate() == state


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_seed_is_part_of_the_result(algorithm: str) -> None:
    settings = [CommunitySettings(seed=seed, algorithm=algorithm) for seed in range(4)]
    results = {repr(find_communities(*any_graph(), each)) for each in settings}
    assert len(results) > 1


@pytest.mark.parametrize("algorithm", ["leiden", "louvain", "infomap", "label_propagation", *OF_CDLIB])
def test_every_algorithm_parts_two_cliques_and_a_loner(algorithm: str) -> None:
    entities = [entity(name) for name in "ABCDEFGHI"]
    pairs = [*itertools.combinations("ABCD", 2), *itertools.combinations("EFGH", 2), ("D", "E")]
    links = [link(a, b) for a, b in pairs]
    state = random.getstate()
    settings = CommunitySettings(algorithm=algorithm, max_size=4, seed=1)
    communities = find_communities(entities, links, settings)
    assert sorted(members(communities)) == ["ABCD", "EFGH", "I"]
    assert communities == find_communities(entities[::-1], links[::-1], settings)
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("entities", "links", "least", "worth"),
    [
        (("a",), (), 1, True),
        (("a",), (), 2, False),
        (("a", "b"), (), 2, False),
        (("a", "b"), ("r",), 2, True),
        (("a", "b"), ("r",), 3, False),
    ],
)
def test_names_that_nothing_links_are_no_more_to_summarise_together(
    entities: tuple[str, ...], links: tuple[str, ...], least: int, worth: bool
) -> None:
    assert Community("m", 0, None, (), entities, links, ("c",)).is_worth_a_summary(least) is worth
