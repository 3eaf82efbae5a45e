"""Makes an index what DSPy's own programs take: tools for `dspy.ReAct`, and a retriever that returns passages."""

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, get_args

import dspy
from pydantic.fields import FieldInfo

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.ports import Filters, RetrieverLike
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program
from kraq_dspy.workspace.workspace import Workspace


def index_tools(space: Workspace) -> list[dspy.Tool]:
    """Make tools for an agent from an index: `search`, `starters`, `questions_about`, `community`, `neighbours_of`
    and
    `read_document`. `kraq mcp` offers the same tools. The tools call no language model.

    >>> with Workspace.open("ada.kraq") as space:
    ...     agent = dspy.ReAct("question -> answer", tools=index_tools(space))
    >>> sorted(agent.tools)[:3]
    ['community', 'finish', 'neighbours_of']

    A tool returns one line of JSON. For an unknown id, a tool raises UnknownRecordError, which `dspy.ReAct` shows to
    its model.
    """
    tools = IndexTools(space, choose_program(DEFAULT_PROGRAM))
    return [dspy.Tool(_as_json(method), arg_desc=_descriptions(method)) for method in tools.looking_up]


def _as_json(method: Callable[..., Any]) -> Callable[..., str]:
    @functools.wraps(method)
    def tool(**arguments: Any) -> str:
        return json.dumps(method(**arguments), ensure_ascii=False)

    return tool


def _descriptions(method: Callable[..., Any]) -> dict[str, str]:
    """Return what the method's `Annotated` parameters say of themselves."""
    notes = {
        name: next((note for note in get_args(parameter.annotation) if isinstance(note, FieldInfo)), None)
        for name, parameter in inspect.signature(method).parameters.items()
    }
    return {name: note.description for name, note in notes.items() if note is not None and note.description}


class PassageRetriever(dspy.Module):
    """A retriever with the interface of `dspy.retrievers.Embeddings`. A call with a query returns
    `dspy.Prediction(passages=[...])`, best first, and also `ids`, `scores` and `hits`.

    >>> with Workspace.open("ada.kraq") as space:
    ...     search = PassageRetriever(space.retriever("bm25"), k=1)
    ...     print(search("Where did Ada live?").passages)
    ['Ada\\nAda lived in London.']

    Args:
        retrieve: a retriever of a `Workspace`, or anything that `as_retriever` takes.
        k: the number of passages, 1 or more.
        filters: conditions on the metadata of chunks.

    Raises:
        ValueError: for a `k` below 1.
    """

    def __init__(self, retrieve: RetrieverLike, k: int = 5, filters: Filters | None = None) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k is {k}; expected 1 or more passages.")
        self.retrieve = as_retriever(retrieve)
        self.k = k
        self.filters = filters

    async def aforward(self, query: str, k: int | None = None) -> dspy.Prediction:
        hits = await call(self.retrieve, query, k or self.k, filters=self.filters)
        return dspy.Prediction(
            passages=[hit.chunk.passage for hit in hits],
            ids=[hit.chunk.id for hit in hits],
            scores=[hit.score for hit in hits],
            hits=hits,
        )

    forward = blocking(aforward)

    def __call__(self, query: str, k: int | None = None) -> dspy.Prediction:  # type: ignore[override]
        """The query by its place, as DSPy's retrievers take it."""
        prediction: dspy.Prediction = super().__call__(query=query, k=k)
        return prediction
