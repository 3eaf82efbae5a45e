"""Runs the real llama-index-core over a retriever of three chunks."""

import asyncio
import doctest
from importlib.util import find_spec

import pytest

from tests.apps.integrations.rivers import Rivers, RiversModule

pytestmark = pytest.mark.skipif(find_spec("llama_index") is None, reason="needs the extra llama-index")

QUESTION = "Which river flows into the black sea"


@pytest.mark.parametrize("source", [Rivers(), RiversModule()])
def test_hits_are_nodes_in_their_order_in_both_forms(source: Rivers | RiversModule) -> None:
    from llama_index.core.schema import MetadataMode, NodeRelationship

    from kraq_dspy.apps import LlamaIndexRetriever

    retriever = LlamaIndexRetriever(source, k=2)
    nodes = retriever.retrieve(QUESTION)
    assert [(each.node.node_id, each.score) for each in nodes] == [("c-Danube", 5.0), ("c-Rhine", 4.0)]
    node = nodes[0].node
    assert node.get_content(metadata_mode=MetadataMode.LLM) == "title: Danube\n\nIt flows into the Black Sea."
    assert node.metadata == {
        "year": 2001, "title": "Danube", "document_id": "Danube.txt", "why": "words", "query": QUESTION,
    }  # fmt: skip
    assert (node.start_char_idx, node.end_char_idx) == (0, 28)
    assert node.relationships[NodeRelationship.SOURCE].node_id == "Danube.txt"
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [(each.node.node_id, each.score) for each in again] == [("c-Danube", 5.0), ("c-Rhine", 4.0)]


def test_a_query_engine_answers_from_it() -> None:
    from llama_index.core.llms.mock import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    from kraq_dspy.apps import LlamaIndexRetriever

    engine = RetrieverQueryEngine.from_args(LlamaIndexRetriever(Rivers(), k=1), llm=MockLLM())  # says its prompt again
    response = engine.query(QUESTION)
    assert "It flows into the Black Sea." in str(response)
    assert [source.node.node_id for source in response.source_nodes] == ["c-Danube"]


def test_filters_and_a_function_as_the_source() -> None:
    from kraq_dspy.apps import LlamaIndexRetriever

    nodes = LlamaIndexRetriever(Rivers(), filters={"year": 2000}).retrieve(QUESTION)
    assert [each.node.node_id for each in nodes] == ["c-Rhine"]
    (only,) = LlamaIndexRetriever(lambda question: ["A text."]).retrieve(QUESTION)
    assert only.node.get_content() == "A text."


def test_bad_values_are_refused() -> None:
    from kraq_dspy.apps import LlamaIndexRetriever

    with pytest.raises(ValueError, match="k is 0"):
        LlamaIndexRetriever(Rivers(), k=0)
    with pytest.raises(ValueError, match="expected some text"):
        LlamaIndexRetriever(Rivers()).retrieve("  ")


def test_its_example_is_right() -> None:
    from kraq_dspy.apps import llama_index

    assert doctest.testmod(llama_index) == doctest.TestResults(0, 4)
