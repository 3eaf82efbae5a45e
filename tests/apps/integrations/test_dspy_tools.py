"""Tests an index in the hands of DSPy's own agent: the tools of `dspy.ReAct`, and passages as its retrievers
return them.
"""

import asyncio
import json
from collections.abc import Iterator

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.apps import PassageRetriever, index_tools
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.apps.integrations.rivers import Rivers
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

QUESTION = "Which river flows into the black sea"
EMBEDDER = KeywordEmbedder("ada", "byron", "juan", "engine")


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    out = tmp_path_factory.mktemp("tools") / "poets.kraq"
    texts = {"byron": "Lord Byron wrote Don Juan.", "ada": "Ada Lovelace wrote notes on the Analytical Engine."}
    kept_index([Document(name, name, text) for name, text in texts.items()], out, embedder=EMBEDDER)
    with Workspace.open(out, embedder=EMBEDDER) as opened:
        yield opened


def test_an_agent_searches_the_index_and_answers_from_what_it_found(space: Workspace) -> None:
    steps = [
        {"next_thought": "I search.", "next_tool_name": "search", "next_tool_args": {"query": "Don Juan", "limit": 1}},
        {"next_thought": "I know.", "next_tool_name": "finish", "next_tool_args": {}},
        {"reasoning": "It says so.", "answer": "Lord Byron"},
    ]
    react = dspy.ReAct("question -> answer", tools=index_tools(space), max_iters=3)
    with dspy.context(lm=DummyLM(steps)):  # type: ignore[no-untyped-call]
        prediction = react(question="Who wrote Don Juan?")
    assert prediction.answer == "Lord Byron"
    (found,) = json.loads(prediction.trajectory["observation_0"])["passages"]
    assert (found["document_id"], found["text"]) == ("byron", "Lord Byron wrote Don Juan.")


def test_two_retrievers_are_two_tools_with_names_that_an_agent_can_tell_apart(space: Workspace) -> None:
    tools = [space.retriever("adaptive"), space.retriever("bm25")]
    with dspy.context(lm=DummyLM([])):
        agent = dspy.ReAct("question -> answer", tools=tools)
    assert list(agent.tools) == ["search_adaptive", "search_bm25", "finish"]
    assert "Exact names and terms" in agent.tools["search_bm25"].desc


def test_two_retrievers_that_differ_in_an_option_are_two_tools(space: Workspace) -> None:
    """DSPy keeps one of two tools of one name, and says nothing."""
    tools = [
        space.retriever("adaptive"),
        space.retriever("adaptive", pagerank=0.25),
        space.retriever("adaptive", pool=9),
    ]
    with dspy.context(lm=DummyLM([])):
        agent = dspy.ReAct("question -> answer", tools=tools)
    assert list(agent.tools) == ["search_adaptive", "search_adaptive_pagerank_0_25", "search_adaptive_pool_9", "finish"]


def test_every_tool_says_what_it_does_and_what_it_takes(space: Workspace) -> None:
    tools = {tool.name: tool for tool in index_tools(space)}
    assert list(tools) == ["search", "starters", "questions_about", "community", "neighbours_of", "read_document"]
    assert all(tool.desc for tool in tools.values())
    for tool in tools.values():
        for name, schema in tool.args.items():
            assert schema.get("description"), f"{tool.name}({name})"
    assert json.loads(tools["read_document"](document_id="ada"))["title"] == "ada"


def test_a_retriever_returns_passages_as_those_of_dspy_do() -> None:
    search = PassageRetriever(Rivers(), k=2)
    found = search(QUESTION)
    assert found.passages == ["Danube\nIt flows into the Black Sea.", "Rhine\nIt flows into the North Sea."]
    assert found.ids == ["c-Danube", "c-Rhine"]
    assert [hit.score for hit in found.hits] == found.scores
    assert search(QUESTION, k=1).ids == ["c-Danube"]
    assert asyncio.run(search.acall(query=QUESTION)).passages == found.passages


def test_less_than_one_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        PassageRetriever(Rivers(), k=0)
