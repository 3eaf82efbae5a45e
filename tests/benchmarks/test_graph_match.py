"""Tests, on graphs that fit on a page, how much of a passage's facts a graph covers."""

import pytest
from graph_match import ExtractedGraph, fact_coverages, link_matches, name_matches

from kraq_dspy.errors import EvaluationError
from tests.conftest import KeywordEmbedder

pytestmark = pytest.mark.slow

FACT = "The caterpillar sheds its skin."
SHED = ("caterpillar", "sheds", "its skin")


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("caterpillar", "butterfly")


def test_a_fact_is_covered_by_the_words_of_its_entities_links(embedder: KeywordEmbedder) -> None:
    graph = ExtractedGraph(["caterpillar", "its skin"], [SHED])

    assert fact_coverages([FACT], graph, embedder) == [1.0]
    assert fact_coverages(["A caterpillar shed its brown skin on a leaf."], graph, embedder) == [3 / 5]


def test_what_hangs_on_other_entities_does_not_count(embedder: KeywordEmbedder) -> None:
    others = [f"butterfly {n}" for n in range(5)]
    links = [SHED, *((name, "flies over", "a caterpillar") for name in others)]
    fact = "The butterfly sheds skin."

    assert fact_coverages([fact], ExtractedGraph(["caterpillar", *others], links), embedder) == [1 / 3]


def test_a_graph_without_names_covers_nothing(embedder: KeywordEmbedder) -> None:
    assert fact_coverages([FACT, FACT], ExtractedGraph([], [SHED]), embedder) == [0.0, 0.0]
    assert fact_coverages([FACT], ExtractedGraph([" "], []), embedder) == [0.0]
    assert fact_coverages([], ExtractedGraph(["caterpillar"], [SHED]), embedder) == []


def test_a_fact_without_content_is_refused(embedder: KeywordEmbedder) -> None:
    with pytest.raises(EvaluationError, match="'It is'"):
        fact_coverages(["It is"], ExtractedGraph(["caterpillar"], [SHED]), embedder)


GOLD = [("Ada Lovelace", "worked with", "Charles Babbage"), ("Ada Lovelace", "daughter of", "Lord Byron")]


def test_a_name_is_found_by_the_words_it_shares_with_its_best_partner() -> None:
    gold = ["Lord Byron", "1960"]

    assert name_matches(gold, ["lord byron", "1960"]) == (1.0, 1.0)
    assert name_matches(gold, ["Byron"]) == pytest.approx((2 / 3, 1 / 3))
    assert name_matches(gold, ["Lord Byron", "1960", "a poet", "a friend"]) == (0.5, 1.0)
    assert name_matches(gold, ["", " "]) == (0.0, 0.0)
    with pytest.raises(EvaluationError, match="no gold names"):
        name_matches([], ["Byron"])


def test_links_match_in_either_direction_and_by_the_words_of_their_weaker_end() -> None:
    assert link_matches(GOLD, [("Charles Babbage", "employed", "Ada Lovelace")]) == (1.0, 0.5)
    assert link_matches(GOLD[:1], [("Ada Lovelace", "knew", "Babbage"), GOLD[0]]) == (0.5, 1.0)
    assert link_matches(GOLD[:1], [("Ada Lovelace", "knew", "Babbage")]) == pytest.approx((2 / 3, 2 / 3))
    assert link_matches(GOLD, [("Ada Lovelace", "wrote", "")]) == (0.0, 0.0)
    assert link_matches(GOLD, []) == (0.0, 0.0)
