"""Retrievers as tools of an agent, and hits as inputs of a prompt."""

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Corpus
from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers import RewrittenRetriever

TEXTS = ["The Rhine is a river in Germany.", "The Danube «flows»\nthrough Vienna.", "Bread is baked."]


@pytest.fixture(scope="module")
def dense() -> Retriever:
    return Corpus.from_texts(TEXTS).retriever


def test_a_retriever_needs_no_k_and_says_what_it_is(dense: Retriever) -> None:
    assert dense("Which river is in Germany?")[0].chunk.text == TEXTS[0]
    assert repr(dense) == "DenseRetriever()"
    assert (
        repr(RewrittenRetriever(dense, pool=7))
        == "RewrittenRetriever(retrieve=DenseRetriever(), pool=7, constant=60.0)"
    )


@pytest.mark.parametrize("is_module", [False, True])
def test_an_agent_searches_with_a_retriever_as_it_is(dense: Retriever, is_module: bool) -> None:
    retriever = RewrittenRetriever(dense) if is_module else dense
    name = dspy.Tool(retriever).name
    search = {"next_thought": "search", "next_tool_name": name, "next_tool_args": {"question": "rivers", "k": 2}}
    end = {"next_thought": "done", "next_tool_name": "finish", "next_tool_args": {}}
    rewriting = [{"rewritten": "rivers"}] if is_module else []
    lm = DummyLM([search, *rewriting, end, {"reasoning": "r", "answer": "the Rhine"}])

    with dspy.context(lm=lm):
        agent = dspy.ReAct("question -> answer", tools=[retriever])
        assert agent(question="Which rivers are there?").answer == "the Rhine"

    observed = str(lm.history[-1]["messages"])
    assert TEXTS[0] in observed
    assert "through Vienna" in observed
    assert TEXTS[2] not in observed  # k was 2


def test_an_agents_model_reads_a_name_and_a_description_that_it_can_use(dense: Retriever) -> None:
    """The formulas of the class are for programmers."""
    tool = dspy.Tool(dense)
    assert tool.name == "search_dense"
    assert tool.desc.startswith("Finds passages of the documents, best first. `question` is what to look for")
    assert "the papers' baseline" in tool.desc
    assert "cosine" in str(type(dense).__doc__)
    assert "cosine" not in tool.desc


def test_a_retriever_takes_a_name_and_a_description_for_the_model(dense: Retriever) -> None:
    tool = dspy.Tool(dense, name="search", desc="Finds passages about a question.")
    agent = dspy.ReAct("question -> answer", tools=[tool])
    assert list(agent.tools) == ["search", "finish"]
    assert "Finds passages about a question." in agent.react.signature.instructions
    assert TEXTS[0] in [hit.chunk.text for hit in tool(question="Which river is in Germany?")]


def test_hits_are_passages_in_a_prompt(dense: Retriever) -> None:
    lm = DummyLM([{"answer": "x"}])
    with dspy.context(lm=lm):
        dspy.Predict("passages, question -> answer")(passages=dense("rivers", 2), question="Which?")
    assert f"[1] «{TEXTS[0]}»" in lm.history[0]["messages"][-1]["content"]
