"""Tests the walk from passage to passage by hand, over graphs of a few nodes."""

from typing import Any

import pytest

from kraq_dspy.retrievers import DenseRetriever, PageRankRetriever, passage_graph
from tests.programs.conftest import Library


def pagerank(
    library: Library,
    mentions: list[tuple[str, str]],
    links: list[tuple[str, str, float]] | None = None,
    **settings: Any,
) -> PageRankRetriever:
    return PageRankRetriever(
        DenseRetriever(library.records, library.chunk_vectors, library.embedder),
        passage_graph(library.records.chunks, [(library.id(name), entity) for name, entity in mentions], links or []),
        library.records,
        **settings,
    )


def test_the_walk_from_one_passage_by_hand(library: Library) -> None:
    # span - Stonework - blank. From span, with damping d, the visits p solve
    # p(span) = (1 - d) + d p(S) / 2, p(S) = d (p(span) + p(blank)), p(blank) = d p(S) / 2; for d = 1/2 that gives
    # p(S) = 1/3, p(blank) = 1/12, p(span) = 7/12.
    hits = pagerank(library, [("span", "Stonework"), ("blank", "Stonework")], share=0.5)("stone bridge", 2)
    assert [(hit.chunk.title, hit.why) for hit in hits] == [("span", "pagerank"), ("blank", "pagerank")]
    assert [hit.score for hit in hits] == pytest.approx([7 / 12, 1 / 12])


def test_a_link_between_entities_leads_on(library: Library) -> None:
    mentions = [("span", "Stonework"), ("blank", "Quarry")]
    assert [hit.why for hit in pagerank(library, mentions, share=0.5)("stone bridge", 2)] == ["pagerank", "dense"]
    linked = pagerank(library, mentions, [("Quarry", "Stonework", 1.0)], share=0.5)
    assert library.names(linked("stone bridge", 2)) == ["span", "blank"]


def test_the_stronger_link_wins_and_both_directions_add_up(library: Library) -> None:
    mentions = [("span", "Stonework"), ("blank", "Quarry"), ("rhine", "Water")]
    links = [("Stonework", "Water", 1.5), ("Stonework", "Quarry", 1.0), ("Quarry", "Stonework", 1.0)]
    names = library.names(pagerank(library, mentions, links, share=0.3)("stone bridge", 3))
    assert names == ["span", "blank", "rhine"]


def test_a_sharper_start_stays_nearer_to_the_best_hit(library: Library) -> None:
    # Among the starts are gate (cosine .949) and keep (.447), each with an entity and a neighbour of its own.
    mentions = [("gate", "A"), ("hall", "A"), ("keep", "B"), ("tune", "B")]
    question = "castle bridge bridge"

    def share_of_gate(sharpness: float) -> float:
        hits = pagerank(library, mentions, share=1, sharpness=sharpness)(question, 5)
        return next(hit.score for hit in hits if hit.chunk.title == "gate")

    assert share_of_gate(0) < share_of_gate(1) < share_of_gate(3)


def test_a_graph_that_knows_none_of_the_passages_leaves_dense_retrieval(library: Library) -> None:
    retrieve = PageRankRetriever(
        DenseRetriever(library.records, library.chunk_vectors, library.embedder),
        passage_graph([], []),
        library.records,
    )
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    assert retrieve("bridge", 5) == dense("bridge", 5)


def test_a_mention_in_an_unknown_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="'elsewhere'"):
        passage_graph(["here"], [("elsewhere", "entity")])
    with pytest.raises(ValueError, match=r"weighs -1"):
        passage_graph(["here"], [], [("a", "b", -1.0)])


@pytest.mark.parametrize(
    ("settings", "message"), [({"share": 1.1}, "share"), ({"damping": 1}, "damping"), ({"sharpness": -1}, "sharpness")]
)
def test_settings_out_of_range_are_refused(library: Library, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pagerank(library, [], **settings)
