"""Says what a step is, a program mapped over items, and runs one in memory.

items = [Item("a", {"passage": "Ada met Charles."})]
async for done in DirectSteps().map("extract", "extractor", ExtractGraph(), items, total=1):
    print(done.id, done.prediction.entities)
"""

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Protocol

import dspy

from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.roles import lm_in_program
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.settings import RunSettings
from kraq_dspy.steps.bounded import bounded_map


@dataclass(frozen=True, slots=True)
class Item:
    """One call of a program: its id within the stage, the program's inputs by name, and a `name` for people.

    Of the items of one `document`, all that fail count as one failure, so that no document is taken for a model that
    fails.
    """

    id: str
    inputs: Mapping[str, Any]
    name: str = ""
    document: str = ""


Items = Iterable[Item] | AsyncIterable[Item]


class OrderedItems(Iterator[Item]):
    """Items of a stage of which some are made from the outcomes of others, as the summary of a community from its
    parts'.

    `after` names, for each id, the ids that go before it; `make(id)` makes an item when its turn comes. An iterator
    that has no item now may have one later, so the stage's map calls `ended(item)` for each item that is done or has
    failed, and then asks for the next again.

    >>> items = OrderedItems({"whole": ["part"], "part": []}, lambda id: Item(id, {}))
    >>> first = next(items)
    >>> first.id, next(items, None)  # "whole" waits for "part"
    ('part', None)
    >>> items.ended(first)
    >>> next(items).id
    'whole'
    """

    def __init__(self, after: Mapping[str, Collection[str]], make: Callable[[str], Item]) -> None:
        self._make = make
        self._order = TopologicalSorter(
            {id: [required for required in before if required in after] for id, before in after.items()}
        )
        self._order.prepare()
        self._ready: deque[str] = deque()

    def __next__(self) -> Item:
        self._ready.extend(self._order.get_ready())
        if not self._ready:
            raise StopIteration
        return self._make(self._ready.popleft())

    def ended(self, item: Item) -> None:
        self._order.done(item.id)


@dataclass(frozen=True, slots=True)
class Done:
    """What a program made of an item, and the name of the model that it asked."""

    id: str
    prediction: dspy.Prediction
    model: str


class Steps(Protocol):
    """Maps a program over items. The pipeline is written against this, so it runs the same in memory and on disk."""

    def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        """Yields what is done, in any order; an item that failed is left out.

        Where `items` come one by one from another stage, the two run at the same time; `OrderedItems` are told of each
        that has come to its end. `role` says whose model does it where the program has none of its own. `total` is the
        number of items of the stage; None if an earlier call for the same stage gave it.
        """

    def model(self, role: str, program: dspy.Module) -> str:
        """The name of the model that `map` would ask; "" for none."""


class DirectSteps:
    """Runs programs with the models of DSPy's settings; keeps nothing; the first failure is raised."""

    def __init__(self, concurrency: int = RunSettings.concurrency, progress: Progress | None = None) -> None:
        self.concurrency = concurrency
        self.progress = progress or SilentProgress()

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        async def work(item: Item) -> Done:
            with working_on(stage, item.id):
                return Done(item.id, await program.acall(**item.inputs), model_of(program))

        if total is not None:
            self.progress.start(stage, total)
        async for done in bounded_map(work, items, self.concurrency, after_each=when_ended(items)):
            self.progress.advance(stage)
            yield done
        self.progress.finish(stage)

    def model(self, role: str, program: dspy.Module) -> str:
        return model_of(program)


def when_ended(items: Items) -> Callable[[Item], None]:
    """The function to call with an item whose outcome was handed on: the `ended` of `OrderedItems`, or one that does
    nothing."""
    return getattr(items, "ended", lambda item: None)


def model_of(program: dspy.Module, lm: dspy.BaseLM | None = None) -> str:
    """The name of the model that the program would ask now, if it has none of its own `lm`; "" for none."""
    model = lm_of(program, lm)
    return "" if model is None else str(model.model)


def lm_of(program: dspy.Module, lm: dspy.BaseLM | None = None) -> Any:
    """Do as `model_of` does, but give the model itself; None for none."""
    models = [predictor.lm for predictor in program.predictors() if predictor.lm is not None]
    if not models and lm is None:
        models = [model for predictor in program.predictors() if (model := lm_in_program(predictor)) is not None]
    return models[0] if models else lm or dspy.settings.lm


def limit_of(lm: dspy.BaseLM) -> int | None:
    """The most tokens of the model's replies; None for the server's own limit. OpenAI's reasoning models have another
    word for it."""
    limit: int | None = lm.kwargs.get("max_tokens") or lm.kwargs.get("max_completion_tokens")
    return limit
