import itertools
import math
import random
import sys
from pathlib import Path

import pytest

from kraq_dspy.asset.graph.communities import communities_at, find_communities
from kraq_dspy.asset.graph.other_algorithms import ALGORITHMS, require_algorithm, score_partition
from kraq_dspy.build.index.build import build_index
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.records import Document, Entity, Relationship
from kraq_dspy.settings import COMMUNITY_ALGORITHMS, CommunitySettings, Settings

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
    settings = CommunitySettings(algorithm=algorithm, max_size=4, seed=1)
    communities = find_communities(ENTITIES, LINKS, settings)
    assert sorted("".join(community.entity_ids) for community in communities) == ["ABCD", "EFGH", "I"]
    assert communities == find_communities(list(reversed(ENTITIES)), list(reversed(LINKS)), settings)
    assert random.getstate() == state
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("algorithm", ["label_propagation", "infomap"])
def test_a_hierarchy_is_found_by_the_algorithm_of_the_settings(algorithm: str) -> None:
    pytest.importorskip("cdlib")
    settings = CommunitySettings(algorithm=algorithm, max_size=3)
    communities = find_communities(ENTITIES, LINKS, settings)
    assert sorted("".join(community.entity_ids) for community in communities_at(communities, 0)) == [
        "ABCD",
        "EFGH",
        "I",
    ]
    assert communities == find_communities(ENTITIES, list(reversed(LINKS)), settings)


def test_the_settings_know_every_algorithm() -> None:
    assert set(COMMUNITY_ALGORITHMS) == {"leiden", *ALGORITHMS}


def test_a_build_with_an_algorithm_whose_package_is_missing_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "cdlib", None)
    settings = Settings(communities=CommunitySettings(algorithm="louvain"))
    with pytest.raises(MissingExtraError, match=r"'louvain' needs the package 'cdlib'"):
        build_index([Document("d", "", "Ada met Ben.")], tmp_path / "new.kraq", settings=settings)
    assert not (tmp_path / "new.kraq").exists()


def test_scores_are_those_that_can_be_counted_by_hand() -> None:
    pytest.importorskip("cdlib")
    communities = find_communities(ENTITIES, LINKS, CommunitySettings())
    scores = score_partition(ENTITIES, LINKS, communities_at(communities, 0))
    # 12 of 13 links are inside; each clique has 13 ends, one of which leaves.
    assert scores["coverage"] == pytest.approx(12 / 13)
    assert scores["conductance"] == pytest.approx(1 / 13)
    assert scores["internal_density"] == pytest.approx(1.0)
    assert scores["modularity"] == pytest.approx(12 / 13 - 2 * (13 / 26) ** 2)


def test_a_graph_without_links_has_no_scores() -> None:
    alone = find_communities(ENTITIES, [], CommunitySettings())
    assert all(math.isnan(score) for score in score_partition(ENTITIES, [], alone).values())


def test_communities_that_are_no_partition_are_refused() -> None:
    communities = find_communities(ENTITIES, LINKS, CommunitySettings())
    with pytest.raises(ValueError, match="exactly one"):
        score_partition(ENTITIES, LINKS, communities[1:])


def test_an_unknown_algorithm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="walktrap"):
        require_algorithm("magic")


def test_without_cdlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cdlib", None)
    with pytest.raises(MissingExtraError, match=r"kraq-dspy\[communities\]"):
        find_communities(ENTITIES, LINKS, CommunitySettings(algorithm="louvain"))
