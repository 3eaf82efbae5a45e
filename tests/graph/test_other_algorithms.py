import itertools
import math
import random
import sys

import pytest

from kraq_dspy.config import CommunitySettings
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.graph.communities import communities_at, find_communities
from kraq_dspy.graph.other_algorithms import ALGORITHMS, partition_with, score_partition
from kraq_dspy.records import Entity, Relationship

# Two cliques of four, A B C D and E F G H, and one link between them; I stands alone.
ENTITIES = [Entity(name, name, "", "", (name,), ()) for name in "ABCDEFGHI"]
PAIRS = [*itertools.combinations("ABCD", 2), *itertools.combinations("EFGH", 2), ("D", "E")]
LINKS = [Relationship(f"{a}-{b}", a, b, "", "", 1.0, ()) for a, b in PAIRS]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_parts_two_cliques_and_a_loner_in_silence(
    algorithm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cdlib")
    random.seed(3)
    state = random.getstate()
    found = partition_with(algorithm, ENTITIES, LINKS, seed=1)
    assert ["".join(community.entity_ids) for community in found if len(community.entity_ids) == 1] == ["I"]
    assert sorted("".join(community.entity_ids) for community in found) == ["ABCD", "EFGH", "I"]
    assert found == partition_with(algorithm, reversed(ENTITIES), reversed(LINKS), seed=1)
    assert random.getstate() == state
    assert capsys.readouterr().out == ""


def test_scores_are_those_that_can_be_counted_by_hand() -> None:
    pytest.importorskip("cdlib")
    found = find_communities(ENTITIES, LINKS, CommunitySettings())
    scores = score_partition(ENTITIES, LINKS, communities_at(found, 0))
    # 12 of 13 links are inside; each clique has 13 ends, one of which leaves.
    assert scores["coverage"] == pytest.approx(12 / 13)
    assert scores["conductance"] == pytest.approx(1 / 13)
    assert scores["internal_density"] == pytest.approx(1.0)
    assert scores["modularity"] == pytest.approx(12 / 13 - 2 * (13 / 26) ** 2)


def test_a_graph_without_links_has_no_scores() -> None:
    alone = find_communities(ENTITIES, [], CommunitySettings())
    assert all(math.isnan(score) for score in score_partition(ENTITIES, [], alone).values())


def test_communities_that_are_no_partition_are_refused() -> None:
    found = find_communities(ENTITIES, LINKS, CommunitySettings())
    with pytest.raises(ValueError, match="exactly one"):
        score_partition(ENTITIES, LINKS, found[1:])


def test_an_unknown_algorithm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="walktrap"):
        partition_with("magic", ENTITIES, LINKS)


def test_without_cdlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cdlib", None)
    with pytest.raises(MissingExtraError, match=r"kraq-dspy\[communities\]"):
        partition_with("louvain", ENTITIES, LINKS)
