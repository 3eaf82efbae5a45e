"""Tests the walk over passages and entities against igraph's PageRank, and that a saved graph is the same."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import igraph
import numpy as np
import pytest

from kraq_dspy._internal.turns import IN_TURN
from kraq_dspy.asset.graph import passage_graph as of_passages
from kraq_dspy.retrievers import PassageGraph, passage_graph

CHUNKS = [f"c{number:03}" for number in range(60)]


@pytest.fixture(scope="module")
def graph() -> PassageGraph:
    """60 passages of which the last ten name nothing, 40 entities; some pairs and links are there twice."""
    return passage_graph(CHUNKS, *_mentions_and_links())


def _mentions_and_links() -> tuple[list[tuple[str, str]], list[tuple[str, str, float]]]:
    chance = random.Random(0)
    mentions = [(chance.choice(CHUNKS[:50]), f"e{chance.randint(0, 39)}") for _ in range(150)]
    links = [(f"e{chance.randint(0, 39)}", f"e{chance.randint(0, 39)}", chance.randint(0, 3) / 2) for _ in range(80)]
    return mentions, links


def test_a_walk_visits_passages_as_igraphs_does(graph: PassageGraph) -> None:
    mentions, links = _mentions_and_links()
    weights: dict[frozenset[str], float] = {frozenset(pair): 1.0 for pair in mentions}
    for source, target, weight in links:
        if source != target:
            weights[frozenset((source, target))] = weights.get(frozenset((source, target)), 0.0) + weight
    names = [*CHUNKS, *sorted({name for pair in weights for name in pair if name.startswith("e")})]
    edges = [tuple(names.index(name) for name in pair) for pair in weights]
    peer = igraph.Graph(n=len(names), edges=edges)

    for damping in (0.5, 0.8):
        start = {mentions[0][0]: 1.0, mentions[1][0]: 0.3}
        reset = [start.get(name, 0.0) for name in names]
        expected = peer.personalized_pagerank(
            vertices=range(len(CHUNKS)), damping=damping, reset=reset, weights=list(weights.values()), directed=False
        )
        np.testing.assert_allclose(graph.visits(start, damping).shares, expected, atol=1e-7)


def test_the_most_visited_passages_come_first_and_ties_by_id() -> None:
    graph = passage_graph(["a", "b", "c", "d"], [("a", "X"), ("c", "X"), ("b", "X")])

    visits = graph.visits({"a": 1.0}, 0.5)

    assert [chunk_id for chunk_id, _ in visits.best()] == ["a", "b", "c"]  # d is not reached
    assert [chunk_id for chunk_id, _ in visits.best(2)] == ["a", "b"]
    assert visits.of(["c", "elsewhere", "a", "d"]) == [visits.shares[2], 0.0, visits.peak, 0.0]


def test_a_passage_that_names_nothing_is_visited_by_who_starts_there() -> None:
    graph = passage_graph(["a", "b"], [])

    [(chunk_id, share)] = graph.visits({"a": 2.0}, 0.8).best()
    assert chunk_id == "a"
    assert share == pytest.approx(0.2)
    with pytest.raises(KeyError, match="elsewhere"):
        graph.visits({"elsewhere": 1.0}, 0.8)


def test_in_a_large_graph_the_walk_is_followed_until_it_is_faint(
    graph: PassageGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = {"c001": 1.0, "c059": 0.3}  # the second names nothing
    exact = graph.visits(start, 0.8)

    monkeypatch.setattr(of_passages, "_LARGE", 0)
    nearby = graph.visits(start, 0.8)

    assert np.abs(nearby.shares - exact.shares).max() <= of_passages._FAINT * graph.degrees.max()
    assert [chunk_id for chunk_id, _ in nearby.best(10)] == [chunk_id for chunk_id, _ in exact.best(10)]
    monkeypatch.setattr(of_passages, "_FAINT", 1e-2)
    assert 0 < np.count_nonzero(graph.visits(start, 0.8).shares) < np.count_nonzero(exact.shares)


@pytest.mark.parametrize("empty", [False, True])
def test_a_graph_that_was_saved_is_mapped_and_the_same(graph: PassageGraph, tmp_path: Path, empty: bool) -> None:
    graph = passage_graph([], []) if empty else graph
    graph.save(tmp_path / "passages.graph")

    opened = PassageGraph.open(tmp_path / "passages.graph")

    for name in ("ids", "bounds", "neighbours", "weights", "degrees"):
        np.testing.assert_array_equal(getattr(opened, name), getattr(graph, name))
    assert opened.knows(["c001", "c1"]) == [not empty, False]
    if not empty:
        assert not opened.weights.flags.owndata


def test_a_walk_waits_until_few_threads_compute(graph: PassageGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IN_TURN, "_places", threading.Semaphore(0))  # others compute
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(graph.visits, {CHUNKS[0]: 1.0}, 0.5)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        IN_TURN._places.release()
        assert waiting.result(60) is not None


def test_a_phrase_leads_on_less_than_a_name() -> None:
    mentions = [("a", "population"), ("b", "population"), ("a", "Offenburg"), ("c", "Offenburg")]
    graph = passage_graph(["a", "b", "c"], [*mentions, ("b", "population")], phrases={"population"})

    by_phrase, by_name = graph.visits({"a": 1.0}, 0.8).of(["b", "c"])

    assert by_name / by_phrase == pytest.approx(1 / of_passages.PHRASE_WEIGHT, rel=0.01)


def test_a_link_with_a_phrase_leads_on_less_than_one_of_names() -> None:
    mentions = [("a", "Ada"), ("b", "poem"), ("c", "Byron")]
    graph = passage_graph(["a", "b", "c"], mentions, [("Ada", "poem", 1.0), ("Byron", "Ada", 1.0)], {"poem"})

    by_phrase, by_name = graph.visits({"a": 1.0}, 0.5).of(["b", "c"])

    assert 0 < by_phrase < by_name / 3
