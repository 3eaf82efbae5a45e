import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.facts import ExtractedGraph, content_words, fact_coverages
from tests.conftest import KeywordEmbedder

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


def test_words_are_compared_without_endings_and_function_words() -> None:
    assert content_words("The butterflies were feeding on the flowers") == content_words("Butterfly feeds: flower!")


def test_a_fact_without_content_is_refused(embedder: KeywordEmbedder) -> None:
    with pytest.raises(EvaluationError, match="'It is'"):
        fact_coverages(["It is"], ExtractedGraph(["caterpillar"], [SHED]), embedder)
