"""A wrong type at a seam is named: the parameter, what came, what was expected."""

from collections.abc import Callable
from typing import Any

import pytest

import kraq_dspy as kraq
from kraq_dspy.retrievers import CombinedRetriever, FusionRetriever, RewrittenRetriever


def retrieve(question: str) -> list[str]:
    return ["The Rhine is a river."]


NOTHING: Any = None
ANY: Any = [retrieve]
FIVE: Any = "5"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: kraq.programs.TraditionalRAG(retrieve, k=FIVE),
            r"k is '5' \(str\); expected a whole number, 1 or more: passages",
        ),
        (lambda: kraq.programs.CombinedRetrieveRAG(retrieve, [], k=FIVE), r"k is '5' \(str\)"),
        (lambda: kraq.programs.QARAG(retrieve, k=FIVE), r"k is '5' \(str\)"),
        (lambda: kraq.programs.SpeculativeRAG(retrieve, NOTHING, m=FIVE), r"m is '5' \(str\); expected a whole number"),
        (lambda: kraq.programs.GraphGlobalSearch(retrieve, tokens=FIVE), r"tokens is '5' \(str\)"),
        (lambda: kraq.programs.TraditionalRAG(FIVE), r"The retriever is str \('5'\); expected something to call"),
        (lambda: kraq.programs.TraditionalRAG(retrieve)(question=NOTHING), "question is None; expected a text"),
        (lambda: FusionRetriever(ANY, pool=FIVE), r"pool is '5' \(str\); expected a whole number, 1 or more"),
        (lambda: FusionRetriever(ANY, constant=FIVE), r"constant is '5' \(str\); expected a number"),
        (lambda: RewrittenRetriever(NOTHING, pool=NOTHING), "pool is None"),
        (lambda: CombinedRetriever(retrieve, ["Which?"], n=FIVE), r"n is '5' \(str\)"),
        (lambda: CombinedRetriever(retrieve, ["Which?"], alpha=FIVE), r"alpha is '5' \(str\); expected a number"),
        (lambda: kraq.Corpus.from_texts(NOTHING), "texts is None; expected a list of texts or documents"),
        (lambda: kraq.Corpus.from_texts(["x"], embedder=FIVE), r"embedder is '5' \(str\), without name"),
    ],
)
def test_the_parameter_is_named_with_what_came_and_what_was_expected(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


@pytest.mark.parametrize("reply", ["one text", {"passages": 5}, [5], None, 7])
def test_a_retriever_that_returns_something_else_than_hits_is_refused_at_the_first_call(reply: object) -> None:
    program = kraq.programs.TraditionalRAG(lambda question: reply)
    with pytest.raises(TypeError, match=r"The retriever '<lambda>' returned .*; expected"):
        program(question="Which river is there?")
