"""The range of an option stands once: each bound can be asked with, and what lies beyond is refused by name."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kraq_dspy import Workspace
from kraq_dspy.errors import ConfigError, KraqError
from kraq_dspy.programs import EfficientSpeculativeRAG, QASearch
from kraq_dspy.retrievers.adaptive import AdaptiveRetriever
from kraq_dspy.retrievers.pagerank import PageRankRetriever
from kraq_dspy.spec import Option, options_of
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS
from tests.orchids import index_of_orchids

NOTHING: Any = None
QUESTION = "Where does Vanilla grow?"


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(index_of_orchids(tmp_path_factory.mktemp("orchids"))) as space:
        yield space


def number(option: Option, value: float) -> float:
    """The value as the option takes it: a whole number, or one with a point."""
    return value if float in option.kinds else int(value)


def bounds(registry: Any) -> list[tuple[str, str, float]]:
    """(name, option, bound) of whatever a registry has."""
    cases = []
    for name, spec in registry.own.items():
        for option in options_of(spec.options).values():
            for bound in (option.least, option.most):
                if bound is not None:
                    cases.append((name, option.name, number(option, bound)))
    return cases


def beyond(registry: Any) -> list[tuple[str, str, float]]:
    """(name, option, a number outside of its bounds) of whatever a registry has."""
    cases = []
    for name, spec in registry.own.items():
        for option in options_of(spec.options).values():
            if option.least is not None:
                cases.append((name, option.name, number(option, option.least) - 1))
            if option.most is not None:
                cases.append((name, option.name, number(option, option.most) + 1))
    return cases


def asked(make: Callable[[], Any]) -> None:
    """Ask; an index that lacks a preparation, or an option that needs another one, may be refused in words."""
    with contextlib.suppress(KraqError):
        make()


@pytest.mark.parametrize(("name", "option", "bound"), bounds(RETRIEVERS))
def test_a_retriever_is_asked_with_each_bound_of_its_options(
    space: Workspace, name: str, option: str, bound: Any
) -> None:
    asked(lambda: space.retriever(name, **{option: bound})(QUESTION, 2))


@pytest.mark.parametrize(("name", "option", "bound"), bounds(PROGRAMS))
def test_a_program_is_asked_with_each_bound_of_its_options(
    space: Workspace, name: str, option: str, bound: Any
) -> None:
    asked(lambda: space.program(name, **{option: bound})(question=QUESTION))


@pytest.mark.parametrize(
    ("make", "name", "option", "value"),
    [("retriever", *case) for case in beyond(RETRIEVERS)] + [("program", *case) for case in beyond(PROGRAMS)],
)
def test_what_lies_beyond_a_bound_is_refused_by_the_options_name(
    space: Workspace, make: str, name: str, option: str, value: Any
) -> None:
    required = {"model": "cross"} if name == "cross-encoder" else {}
    with pytest.raises(ConfigError, match=f"'{option}' is {value:g}|'{option}' is {value}"):
        getattr(space, make)(name, **required, **{option: value})


def test_a_constructor_reads_the_range_of_the_option(space: Workspace) -> None:
    over, graph = space.retriever("hybrid"), space.passage_graph

    for damping in (0, 1):
        with pytest.raises(ValueError, match=f"damping is {damping}; expected a number from 0.01 to 0.99"):
            PageRankRetriever(over, graph, space.index, damping=damping)
        with pytest.raises(ValueError, match=f"damping is {damping}; expected a number from 0.01 to 0.99"):
            AdaptiveRetriever(over, graph, space.index, damping=damping)
    with pytest.raises(
        ValueError, match="most is 2; expected a number from 0 to 1: the largest weight of personalized PageRank"
    ):
        AdaptiveRetriever(over, graph, space.index, most=2)
    with pytest.raises(ValueError, match="similarity is 2; expected a number from 0 to 1"):
        QASearch(space.program("traditional"), space.answers, similarity=2)
    with pytest.raises(ValueError, match="min_similarity is 2; expected a number from -1 to 1"):
        EfficientSpeculativeRAG(over, [QUESTION], NOTHING, space.instructed_embedder, min_similarity=2)
    with pytest.raises(ValueError, match=r"share is 0; expected a number from 0\.001 to 1: share of the budget"):
        PageRankRetriever(over, graph, space.index, share=0)
