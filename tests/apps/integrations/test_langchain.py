"""Runs the real langchain-core over a retriever of three chunks."""

import asyncio
import doctest
from importlib.util import find_spec

import pytest
from pydantic import ValidationError

from tests.apps.integrations.rivers import Rivers, RiversModule

pytestmark = pytest.mark.skipif(find_spec("langchain_core") is None, reason="needs the extra langchain")

QUESTION = "Which river flows into the black sea"


@pytest.mark.parametrize("source", [Rivers(), RiversModule()])
def test_hits_are_documents_in_their_order_in_both_forms(source: Rivers | RiversModule) -> None:
    from kraq_dspy.apps import LangChainRetriever

    retriever = LangChainRetriever(retrieve=source, k=2)
    documents = retriever.invoke(QUESTION)
    assert [document.id for document in documents] == ["c-Danube", "c-Rhine"]
    assert documents[0].page_content == "Danube\nIt flows into the Black Sea."
    assert documents[0].metadata == {
        "year": 2001, "chunk_id": "c-Danube", "document_id": "Danube.txt", "title": "Danube", "start": 0, "end": 28,
        "score": 5.0, "why": "words", "query": QUESTION,
    }  # fmt: skip
    assert LangChainRetriever(retrieve=source, k=1).invoke(QUESTION) == documents[:1]
    assert asyncio.run(retriever.ainvoke(QUESTION)) == documents
    assert asyncio.run(retriever.abatch([QUESTION])) == retriever.batch([QUESTION]) == [documents]


def test_it_is_a_part_of_a_chain() -> None:
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    from kraq_dspy.apps import LangChainRetriever

    prompt = ChatPromptTemplate.from_template("{passages}\n\nQuestion: {question}")
    chain = {
        "passages": LangChainRetriever(retrieve=Rivers(), k=1) | (lambda documents: documents[0].page_content),
        "question": RunnablePassthrough(),
    } | prompt
    assert chain.invoke(QUESTION).to_string() == f"Human: Danube\nIt flows into the Black Sea.\n\nQuestion: {QUESTION}"


def test_filters_and_a_function_as_the_source() -> None:
    from kraq_dspy.apps import LangChainRetriever

    assert [d.id for d in LangChainRetriever(retrieve=Rivers(), filters={"year": 2000}).invoke(QUESTION)] == ["c-Rhine"]
    (only,) = LangChainRetriever(retrieve=lambda question: ["A text."]).invoke(QUESTION)
    assert only.page_content.endswith("A text.")


def test_bad_values_are_refused() -> None:
    from kraq_dspy.apps import LangChainRetriever

    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        LangChainRetriever(retrieve=Rivers(), k=0)
    with pytest.raises(ValueError, match="expected some text"):
        LangChainRetriever(retrieve=Rivers()).invoke("  ")


def test_its_example_is_right() -> None:
    from kraq_dspy.apps import langchain

    assert doctest.testmod(langchain) == doctest.TestResults(0, 4)
