"""Asks a program many questions offline; each answer is in the catalogue before the next."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import dspy

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress
from kraq_dspy.records import Failure
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import ProgramRunner


class AnswerKeeper:
    """Hands each prediction to `store`, which says whether it is an answer, and notes what failed: a `Keeper`."""

    def __init__(self, stage: str, store: Callable[[str, dspy.Prediction], bool]) -> None:
        self.failures: list[Failure] = []
        self.counts = {True: 0, False: 0}
        self._stage = stage
        self._store = store

    def find(self, item: Item) -> Done | None:
        """Nothing: what the catalogue has already is not among the items."""
        return None

    async def keep(self, item: Item, outcome: Done) -> None:
        if flaws := outcome.prediction.get("flaws"):  # a part of an answer is none to prepare
            self.fail(item.id, "; ".join(flaws))
            return
        # In a thread: another process that reviews may hold the catalogue for a moment.
        self.counts[await asyncio.to_thread(self._store, item.id, outcome.prediction)] += 1

    def fail(self, item_id: str, reason: str) -> None:
        self.failures.append(Failure(self._stage, item_id, reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class AskReport:
    """What became of the questions: `unanswered` ones got a reply that is no answer; `calls` were paid for."""

    answered: int
    unanswered: int
    calls: int
    failures: tuple[Failure, ...]
    seconds: float


Report = TypeVar("Report", bound=AskReport)


def ask_all(
    stage: str,
    program: dspy.Module,
    items: Iterable[Item],
    store: Callable[[str, dspy.Prediction], bool],
    *,
    total: int,
    models: LanguageModels,
    progress: Progress,
    report: Callable[..., Report],
) -> Report:
    """Hand each prediction to `store`, with its item's id, as soon as it is there; `total` is the number of items.

    `report` is called with the fields of `AskReport`. Raises ModelError when nothing but failures happens, and lets
    KraqError (a spent budget, a server that is down) end the run; what was kept stays.
    """
    started = perf_counter()
    keeper = AnswerKeeper(stage, store)

    async def ask() -> None:
        try:
            async for _ in ProgramRunner(models, progress).ask(stage, None, program, items, keeper, plural="questions"):
                pass
        finally:
            await models.aclose()

    calls = models.meter.total().calls
    progress.start(stage, total)
    run_coroutine(ask())
    progress.finish(stage)
    return report(
        answered=keeper.counts[True],
        unanswered=keeper.counts[False],
        calls=models.meter.total().calls - calls,
        failures=tuple(keeper.failures),
        seconds=perf_counter() - started,
    )
