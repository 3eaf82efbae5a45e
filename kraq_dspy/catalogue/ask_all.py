"""Asks a program many questions offline; each answer is in the catalogue before the next."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import dspy

from kraq_dspy.concurrency import run_coroutine
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Progress
from kraq_dspy.records import Failure
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import ProgramRunner


class AnswerKeeper:
    """Hands each prediction to `store`, with its item's id, and notes what failed: a `Keeper`."""

    def __init__(self, stage: str, store: Callable[[str, dspy.Prediction], None]) -> None:
        self.failures: list[Failure] = []
        self._stage = stage
        self._store = store

    def find(self, item: Item) -> Done | None:
        """Nothing: what the catalogue has already is not among the items."""
        return None

    async def keep(self, item: Item, outcome: Done) -> None:
        # In a thread: another process that reviews may hold the catalogue for a moment.
        await asyncio.to_thread(self._store, item.id, outcome.prediction)

    def fail(self, item_id: str, reason: str) -> None:
        self.failures.append(Failure(self._stage, item_id, reason))


@dataclass(frozen=True, slots=True)
class AskReport:
    """What failed, and how many calls were paid for."""

    failures: tuple[Failure, ...]
    calls: int


def ask_all(
    stage: str,
    program: dspy.Module,
    items: Iterable[Item],
    store: Callable[[str, dspy.Prediction], None],
    *,
    total: int,
    lm: dspy.BaseLM | None = None,
    models: LanguageModels,
    progress: Progress,
) -> AskReport:
    """Hand each prediction to `store`, with its item's id, as soon as it is there; `total` is the number of items.

    Steps of the program without a model of their own ask `lm`. Raises ModelError when nothing but failures happens, and
    lets KraqError (a spent budget, a server that is down) end the run; what was kept stays.
    """
    keeper = AnswerKeeper(stage, store)

    async def ask() -> None:
        try:
            async for _ in ProgramRunner(models, progress).ask(stage, lm, program, items, keeper, plural="questions"):
                pass
        finally:
            await models.aclose()

    calls = models.meter.total().calls
    progress.start(stage, total)
    run_coroutine(ask())
    progress.finish(stage)
    return AskReport(tuple(keeper.failures), models.meter.total().calls - calls)
