"""Lets one body be the synchronous and the asynchronous form of a module, an engine or an adapter.

The body is written as `aforward`, and `forward` is made of it; a `SavableModule` does that by itself:

    class TraditionalRAG(dspy.Module):
        async def aforward(self, question: str) -> dspy.Prediction:
            hits = await call(self.retrieve, question, self.k)
            reply = await call(self.answer, question=question, passages=[hit.chunk.passage for hit in hits])
            return dspy.Prediction(answer=reply.answer, hits=hits)

        forward = blocking(aforward)

All that takes time goes through `call` or `at_once`. Each first asks who drives the body: an event loop, which answers
None, or `blocking`, which answers with its mark. Then they wait as their driver does. So nothing is stored anywhere,
and a body may run in the thread of a running loop, as in a notebook. Modules are called through DSPy's own `__call__`
or `acall`, so that traces, callbacks, usage and history are as in any DSPy program.
"""

import asyncio
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import dspy

from kraq_dspy._internal.concurrency import gather_all, run_all

P = ParamSpec("P")
Item = TypeVar("Item")
Result = TypeVar("Result")

_BLOCKING = object()


def blocking(body: Callable[P, Coroutine[Any, Any, Result]]) -> Callable[P, Result]:
    """Make the synchronous form of a coroutine function. The coroutine function may await only `call`, `at_once`, and
    coroutine functions that await nothing else.

    >>> async def alength(text: str) -> int:
    ...     return await call(len, text)
    >>> blocking(alength)("Ada")
    3
    """

    @wraps(body)
    def forward(*args: P.args, **kwargs: P.kwargs) -> Result:
        return run(body(*args, **kwargs))

    forward.__name__ = body.__name__.removeprefix("a")
    forward.__qualname__ = f"{body.__qualname__.removesuffix(body.__name__)}{forward.__name__}"
    return forward


def run(body: Coroutine[Any, Any, Result]) -> Result:
    """Return what the coroutine returns, worked out in this thread. Raises RuntimeError if it
    needs an event loop."""
    try:
        question = body.send(None)
        while question is None:
            question = body.send(_BLOCKING)
    except StopIteration as end:
        result: Result = end.value
        return result

    body.close()
    raise RuntimeError(
        f"{body!r} waits for {question!r}, which only an event loop can do; expected `call` and `at_once` alone."
    )


def each(items: AsyncGenerator[Item, None]) -> Iterator[Item]:
    """The items of an asynchronous generator that waits for nothing but `call` and the like, made in this thread."""
    try:
        while True:
            yield run(items.__anext__())
    except StopAsyncIteration:
        return
    finally:
        run(items.aclose())


@types.coroutine
def is_blocking() -> Generator[None, object, bool]:
    """Whether `blocking` drives the coroutine that asks, and not an event loop."""
    return (yield) is _BLOCKING


async def call(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `work(...)` synchronously if the caller is synchronous, otherwise asynchronously. In the asynchronous case,
    a
    module runs by its own asynchronous form. Other work runs in a thread, so that it does not block the event loop.

    >>> run(call(max, 2, 3))
    3
    """
    if await is_blocking():
        return work(*args, **kwargs)
    if hasattr(work, "aforward") and hasattr(work, "acall"):
        return await work.acall(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def result_of(answer: Any) -> Any:
    """The answer of a client, waited for if it is one for event loops."""
    return await answer if inspect.isawaitable(answer) else answer


async def parts_of(stream: Any) -> AsyncGenerator[Any, None]:
    """The parts of a client's stream, of one for event loops and of one for threads; it is closed at the end."""
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    try:
        if hasattr(stream, "__aiter__"):
            async for part in stream:
                yield part
        else:
            for part in stream:
                yield part
    finally:
        if close is not None:
            await result_of(close())


async def at_once(
    work: Callable[[Item], Coroutine[Any, Any, Result]], items: Sequence[Item], *, limit: int | None = None
) -> list[Result]:
    """Run an asynchronous function on every item, several items at a time.

    Args:
        work: an asynchronous function of one item.
        items: the items.
        limit: how many to work on at once; None for all.

    Returns:
        The results in the order of the items.

    >>> async def doubled(number: int) -> int:
    ...     return 2 * number
    >>> run(at_once(doubled, [1, 2, 3]))
    [2, 4, 6]
    """
    if await is_blocking():

        def in_thread(item: Item) -> Result:
            with dspy.context(send_stream=None):  # DSPy streams from threads of anyio alone
                return run(work(item))

        return run_all(in_thread, items, limit=limit)
    return await gather_all(work, items, limit=limit)
