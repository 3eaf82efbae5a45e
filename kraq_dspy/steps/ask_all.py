"""A program asked many things offline, a bounded number of calls at a time; each outcome is kept before the next."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

import dspy

from kraq_dspy.errors import KraqError, ModelError
from kraq_dspy.lms.journal import working_on
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Progress, place_for_call
from kraq_dspy.records import Failure, Usage
from kraq_dspy.steps.direct import Item, Places, bounded_map

logger = logging.getLogger(__name__)

GIVE_UP_AFTER = 25  # failures without one success: the fault is not in the items


async def ask_all(
    stage: str,
    program: dspy.Module,
    items: Iterable[Item],
    keep: Callable[[str, dspy.Prediction], None],
    *,
    lm: dspy.BaseLM,
    models: LanguageModels,
    progress: Progress,
) -> tuple[Failure, ...]:
    """Hand each prediction to `keep`, with its item's id, as soon as it is there; returns what failed.

    Steps of the program without a model of their own ask `lm`. Raises ModelError when nothing but failures happens, and
    lets KraqError (a spent budget, a server that is down) end the run; what was kept stays.
    """
    concurrency = models.settings.run.concurrency
    places = Places(concurrency)
    journal = _Told(progress)
    failures: list[Failure] = []
    kept = 0

    async def work(item: Item) -> None:
        nonlocal kept
        place_for_call.set(partial(places.one, 0))  # of this item's task alone
        try:
            alone = dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True)
            with working_on(stage, item.id, journal), alone:
                prediction = await program.acall(**item.inputs)
            await asyncio.to_thread(keep, item.id, prediction)
            kept += 1
        except KraqError:
            raise
        except Exception as error:  # noqa: BLE001 (costs its item; the reason is kept)
            reason = f"{type(error).__name__}: {error}"
            logger.warning("%s of %s failed: %s", stage, item.id, reason, extra={"stage": stage, "item": item.id})
            failures.append(Failure(stage, item.id, reason))
        progress.advance(stage)
        if not kept and len(failures) >= GIVE_UP_AFTER:
            raise ModelError(_given_up(f"The first {len(failures)}", failures))

    async for _ in bounded_map(work, items, concurrency):
        pass
    if failures and not kept:
        raise ModelError(_given_up(f"All {len(failures)}", failures))
    return tuple(failures)


def _given_up(which: str, failures: list[Failure]) -> str:
    return (
        f"{which} questions failed; the last reason: {failures[-1].reason}. Mend that and run the same command again."
    )


class _Told:
    """A journal that keeps no answer, and tells the progress display what they took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def recall(self, stage: str, item_id: str, request_hash: str) -> str | None:
        return None

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None:
        self._progress.advance(stage, 0, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
