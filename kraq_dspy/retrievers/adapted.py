"""Makes a retriever of anything that finds texts: a function, a `dspy.Retrieve`, an index of
DSPy's."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Chunk, Hit, content_id
from kraq_dspy.retrievers.hits import RetrievalRequest, RetrievingModule, matches

OPTIONS = ("k", "exclude", "filters", "vector")
EXPECTED = "hits (kraq_dspy.extend.Hit), texts, or an object with `passages`"


def as_retriever(source: Any) -> Retriever:
    """Return `source` if it is a retriever of this library, otherwise an `AdaptedRetriever` around
    it.

    Raises TypeError if `source` cannot be called with a question.

    >>> as_retriever(lambda question: ["Ada lived in London."])("Where did Ada live?", 1)[0].chunk.text
    'Ada lived in London.'
    """
    if getattr(source, "keeps_contract", False):
        return cast(Retriever, source)
    return cast(Retriever, AdaptedRetriever(source))


class AdaptedRetriever(RetrievingModule):
    """Makes a retriever of a function or object that takes a question.

    `source` may also take `k`, `exclude`, `filters` and `vector`; the adapter passes the arguments in the signature
    of `source`. `source` may return hits, texts, chunks, or an object with `passages`, as `dspy.Retrieve` and
    `dspy.retrievers.Embeddings` do. A text becomes a passage. The id of this passage is a hash of the text, and the
    score is 1 / rank.

    The adapter drops repeated and excluded passages, and passages that miss the filters. It returns at most `k`
    passages, or fewer if `source` takes no `k`. If `source` is a `dspy.Module`, optimizers tune its predictors and
    `save` includes them. A call raises TypeError if `source` returns none of the types above.

    >>> search = AdaptedRetriever(lambda question, k: ["The Rhine", "The Danube", "The Elbe"][:k])
    >>> [(hit.chunk.text, hit.score) for hit in search("Which rivers are there?", 2)]
    [('The Rhine', 1.0), ('The Danube', 0.5)]
    """

    def __init__(self, source: Callable[..., Any]) -> None:
        super().__init__()
        self.name = getattr(source, "__name__", type(source).__name__)
        self.options = _options(source, self.name)
        self.source = source if isinstance(source, dspy.Module) else _Shared(source)

    async def find(self, request: RetrievalRequest) -> list[Hit]:
        excluded = frozenset(request.exclude)
        size = request.k if "exclude" in self.options else request.k + len(excluded)
        asked_for = replace(request, k=size, exclude=excluded)
        reply = await call(self.source, request.question, **{name: getattr(asked_for, name) for name in self.options})
        hits: dict[str, Hit] = {}
        for hit in self._hits(request.question, reply):
            if hit.chunk.id not in excluded and matches(hit.chunk, request.filters):
                hits.setdefault(hit.chunk.id, hit)
        return list(hits.values())[: request.k]

    def _hits(self, question: str, reply: Any) -> list[Hit]:
        passages = getattr(reply, "passages", reply)
        if isinstance(passages, str | bytes | Mapping) or not isinstance(passages, Sequence):
            raise TypeError(f"The retriever {self.name!r} returned {_described(reply)}; expected a list of {EXPECTED}.")
        return [self._hit(question, passage, rank) for rank, passage in enumerate(passages, start=1)]

    def _hit(self, question: str, passage: Any, rank: int) -> Hit:
        if isinstance(passage, Hit):
            return passage
        passage = getattr(passage, "long_text", passage)  # as DSPy's retrieval models wrap theirs
        if isinstance(passage, Chunk):
            return Hit(passage, 1 / rank, question, self.name)
        if not isinstance(passage, str):
            raise TypeError(
                f"The retriever {self.name!r} returned a list with {_described(passage)}; expected {EXPECTED}."
            )
        id = content_id("text", passage)
        return Hit(Chunk(id, id, 0, 0, len(passage), passage, count_tokens(passage)), 1 / rank, question, self.name)


class _Shared(SharedByCopies):
    """A callable that copies of a program share: it may hold an index or a connection."""

    def __init__(self, source: Callable[..., Any]) -> None:
        self.source = source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.source(*args, **kwargs)


def _options(source: Any, name: str) -> tuple[str, ...]:
    """Tell which of `k`, `exclude`, `filters` and `vector` the source takes."""
    if not callable(source):
        raise TypeError(f"The retriever is {_described(source)}; expected something to call with a question.")

    inner = getattr(type(source), "forward", None)  # a module's __call__ takes anything
    try:
        parameters = list(inspect.signature(inner or source).parameters.values())[1 if inner else 0 :]
    except ValueError:  # a builtin
        return ()

    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [parameter.name for parameter in parameters]
    required = set()
    for parameter in parameters[1:]:
        if parameter.default is parameter.empty and parameter.kind not in stars:
            required.add(parameter.name)
    if not parameters or not required <= set(OPTIONS):
        raise TypeError(
            f"The retriever {name!r} takes ({', '.join(names)}); expected a question, and "
            f"after it any of {', '.join(OPTIONS)}."
        )
    return tuple(option for option in OPTIONS if option in names[1:])


def _described(value: Any) -> str:
    return f"{type(value).__name__} ({value!r:.60})"
