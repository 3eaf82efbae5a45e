"""A tree of four summaries over the nine passages; cosines of the keyword embedder can be worked out by hand."""

from collections.abc import Sequence

from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.records import Hit
from kraq_dspy.retrievers import RaptorRetriever, SummaryTree, TreeNode
from tests.programs.conftest import Library

CLUSTERS = {
    "waters": (1, ["rhine", "elbe"], "river"),
    "crossings": (1, ["elbe", "span", "gate"], "river bridge"),
    "heights": (1, ["keep", "hall"], "castle"),
    "places": (2, ["waters", "crossings"], "river bridge castle"),
}


def tree(library: Library) -> SummaryTree:
    return SummaryTree(
        list(library.records.chunks),
        [
            TreeNode(library.id(name), level, tuple(map(library.id, children)), text, 3)
            for name, (level, children, text) in CLUSTERS.items()
        ],
    )


def raptor(library: Library) -> RaptorRetriever:
    nodes = tree(library)
    vectors = TextVectors(library.question_vectors, library.embedder, {n.id: n.text for n in nodes.nodes.values()})
    vectors.sync("embed")
    return RaptorRetriever(library.records, library.chunk_vectors, library.embedder, nodes, vectors)


def names(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.title or hit.chunk.text for hit in hits]


def test_summaries_and_passages_are_ranked_together(library: Library) -> None:
    hits = raptor(library)("river bridge", 3)
    assert set(names(hits[:2])) == {"elbe", "river bridge"}  # both have the cosine 1
    assert names(hits[2:]) == ["river bridge castle"]
    assert {hit.why for hit in hits} == {"leaf", "summary"}
    summary = next(hit.chunk for hit in hits if hit.chunk.text == "river bridge castle")
    assert (summary.metadata, summary.n_tokens, summary.document_id) == ({"level": 2}, 3, "")


def test_filters_find_passages_alone_and_exclusion_takes_a_summary_with_its_passages(library: Library) -> None:
    retrieve = raptor(library)
    assert names(retrieve("river bridge", 9, filters={"document_id": "doc-e"})) == ["elbe"]
    without = names(retrieve("river bridge", 20, exclude=[library.id("elbe"), library.id("rhine")]))
    assert "river" not in without
    assert "river bridge" in without
    assert "river bridge" not in names(retrieve("river bridge", 20, exclude=[library.id("crossings")]))


def test_the_leaves_of_a_summary_are_the_passages_under_it(library: Library) -> None:
    leaves = tree(library).leaves
    assert leaves[library.id("places")] == {library.id(name) for name in ("rhine", "elbe", "span", "gate")}
