"""Tests what graspologic-native would misread, and what happens where igraph is not installed."""

import importlib.util
import random
import subprocess
import sys

import igraph
import numpy as np
import pytest

from kraq_dspy.asset.graph.numbered_graph import NumberedGraph, Part
from kraq_dspy.asset.graph.partition import membership, require_engine, seed_of
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.settings import OF_CDLIB, CommunitySettings
from tests.asset.graph.test_communities import any_graph, entity, link

LEIDEN = CommunitySettings()


def part_of(nodes: int, pairs: list[tuple[int, int]]) -> Part:
    sources, targets = np.array(pairs, dtype=np.int64).T
    return Part(np.arange(nodes), np.arange(len(pairs)), sources, targets)


def grouped(labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[list[int]]:
    return sorted(np.flatnonzero(labels == label).tolist() for label in set(labels.tolist()))


@pytest.fixture
def without_igraph(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "igraph" else find_spec(name))
    monkeypatch.setitem(sys.modules, "igraph", None)


def test_parallel_links_add_their_weights_in_whatever_direction_they_point() -> None:
    # In a row of four, the middle pair stays together if its three links count 12, and parts if only the last counts.
    row = part_of(4, [(0, 1), (1, 2), (2, 1), (1, 2), (2, 3)])
    weights = np.array([3.0, 5.0, 6.0, 1.0, 3.0])
    assert grouped(membership(row, weights, LEIDEN, "")) == [[0, 1, 2, 3]]
    once = part_of(4, [(0, 1), (1, 2), (2, 3)])
    assert grouped(membership(once, np.array([3.0, 1.0, 3.0]), LEIDEN, "")) == [[0, 1], [2, 3]]


def test_the_order_and_the_direction_of_links_do_not_matter() -> None:
    graph = NumberedGraph(*any_graph())
    part = graph.everything()
    pairs = list(zip(part.sources.tolist(), part.targets.tolist(), strict=True))
    expected = membership(part, graph.weights, LEIDEN, "seed").tolist()
    for seed in range(5):
        draw = random.Random(seed)
        turned = [pair if draw.random() < 0.5 else pair[::-1] for pair in draw.sample(pairs, len(pairs))]
        found = membership(part_of(len(part.nodes), turned), np.ones(len(turned)), LEIDEN, "seed")
        assert found.tolist() == expected


def test_nodes_without_a_link_are_communities_of_one() -> None:
    found = membership(part_of(6, [(1, 2), (4, 4)]), np.ones(2), LEIDEN, "")
    assert grouped(found) == [[0], [1, 2], [3], [4], [5]]
    assert sorted(set(found.tolist())) == list(range(5))


def test_a_seed_is_a_hash_of_64_bits() -> None:
    seeds = [seed_of(str(number)) for number in range(200)]
    assert len(set(seeds)) == 200
    assert max(seeds) >= 1 << 63 > min(seeds) > 1 << 32
    assert max(seeds) < 1 << 64


def test_every_process_finds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "from tests.asset.graph.test_communities import any_graph; import numpy as np;"
        "from kraq_dspy.asset.graph.numbered_graph import NumberedGraph;"
        "from kraq_dspy.asset.graph.partition import membership; from kraq_dspy.settings import CommunitySettings;"
        "graph = NumberedGraph(*any_graph());"
        "print(membership(graph.everything(), graph.weights, CommunitySettings(), 'seed').tolist())"
    )
    exec(command, {})
    elsewhere = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert elsewhere.stdout == capsys.readouterr().out != ""


def test_its_communities_have_the_modularity_of_igraphs_leiden() -> None:
    graph = NumberedGraph(*any_graph())
    part = graph.everything()
    peer = igraph.Graph(n=len(part.nodes), edges=np.column_stack([part.sources, part.targets]))
    ours = [peer.modularity(membership(part, graph.weights, LEIDEN, str(seed)).tolist()) for seed in range(20)]
    random.seed(0)
    theirs = [
        peer.community_leiden("modularity", weights=graph.weights.tolist(), n_iterations=2).modularity
        for _ in range(20)
    ]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=0.01)


@pytest.mark.usefixtures("without_igraph")
@pytest.mark.parametrize(
    "settings",
    [CommunitySettings(algorithm=name) for name in ("louvain", "infomap", "label_propagation", *OF_CDLIB)],
    ids=lambda settings: settings.algorithm,
)
def test_whatever_needs_igraph_says_how_to_install_it(settings: CommunitySettings) -> None:
    message = rf"{settings.algorithm!r} needs the package 'igraph'.*pip install 'kraq-dspy\[communities\]'.*GPL"
    with pytest.raises(MissingExtraError, match=message):
        require_engine(settings)
    with pytest.raises(MissingExtraError, match=message):
        membership(part_of(2, [(0, 1)]), np.ones(1), settings, "")


@pytest.mark.usefixtures("without_igraph")
def test_the_default_runs_without_igraph() -> None:
    require_engine(CommunitySettings())
    graph = NumberedGraph([entity("A"), entity("B")], [link("A", "B")])
    assert membership(graph.everything(), graph.weights, CommunitySettings(), "").tolist() == [0, 0]
