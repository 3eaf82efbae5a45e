"""Maps work over items and keeps every outcome before the next: how each long run fails, gives up and goes on.

An item that fails costs itself alone: its reason is kept, it is left out, and the next run tries it again. Where
nothing but failures happens the fault is not in the items, and the run ends with one message. What must end a run (a
spent budget, a server that is down) is a KraqError, and does. So a run that was interrupted, in whatever way, is
started again with the same command, and asks only for what is missing.

Where outcomes stay is a `Keeper`'s affair: the results of an index (`steps/stored.py`), a catalogue (`catalogue/`), a
file of JSON lines. What runs in threads (the tables of `eval/`) shares `StageFailures` and `concurrency.as_done`.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import dspy

from kraq_dspy._internal.options import type_adapter
from kraq_dspy.errors import KraqError, ModelError
from kraq_dspy.models.lms.adapter import ADAPTER
from kraq_dspy.models.lms.envelope import flaws_heard, with_flaws
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Answer, Journal, Place, TappedJournal, begin_span, working_on
from kraq_dspy.models.lms.roles import LanguageModels, lm_in_program
from kraq_dspy.ports import Progress
from kraq_dspy.steps.bounded import CallSlots, OneByOne, bounded_map
from kraq_dspy.steps.direct import Done, Item, Items, model_of, when_ended

logger = logging.getLogger(__name__)

GIVE_UP_AFTER = 25  # documents, or items of none, that failed without one success
OF_ONE_DOCUMENT = 200  # failures of any items without one success: a long document may be all that there is
LONGEST_REASON = 600  # characters; what other libraries raise may quote a whole reply

Outcome = TypeVar("Outcome")


class Keeper(Protocol[Outcome]):
    """Where the outcomes of a stage stay."""

    def find(self, item: Item) -> Outcome | None:
        """What an earlier run kept for the item; None where it is still to be done."""

    async def keep(self, item: Item, outcome: Outcome) -> None:
        """On disk when this returns."""

    def fail(self, item_id: str, reason: str) -> None:
        """Note why the item has no outcome."""


class StageFailures:
    """Logs and counts the failures of a stage, and ends one in which nothing else happens."""

    def __init__(
        self,
        stage: str,
        items: str,
        *,
        model: str = "",
        again: str = "run the same command again: what was done is kept",
    ) -> None:
        """`items` names them in the plural, `again` is what to do once the fault is mended."""
        self._stage = stage
        self._items = items
        self._model = f" with the model {model!r}" if model else ""
        self._again = again
        self._count = 0
        self._failed: set[str] = set()  # ids of documents, or of items that belong to none
        self._succeeded = False
        self._reason = ""

    def succeed(self) -> None:
        self._succeeded = True

    def add(self, item_id: str, reason: str, document: str = "") -> None:
        """Raises ModelError when it is one too many; failures of one document count once."""
        fields = {"stage": self._stage, "item": item_id, "reason": reason}
        logger.warning("%s of %s failed: %s", self._stage, item_id, reason, extra=fields)
        self._count += 1
        self._reason = reason
        self._failed.add(document or item_id)
        too_many = len(self._failed) >= GIVE_UP_AFTER or self._count >= OF_ONE_DOCUMENT
        if too_many and not self._succeeded:
            raise self._error(f"The first {self._count}")

    def check_end(self) -> None:
        """Raises ModelError when every item failed."""
        if self._count and not self._succeeded:
            raise self._error(f"All {self._count}")

    def _error(self, which: str) -> ModelError:
        return ModelError(
            f"{which} {self._items} failed{self._model}; the last reason: {self._reason}. Mend that and {self._again}."
        )


async def map_kept(
    work: Callable[[Item], Awaitable[Outcome]],
    items: Items,
    keeper: Keeper[Outcome],
    failures: StageFailures,
    *,
    concurrency: int,
    ended: Callable[[Item], None] = lambda item: None,
    one_by_one: OneByOne | None = None,
) -> AsyncIterator[Outcome | None]:
    """The outcome of every item, in any order; None for one that failed.

    An outcome that the keeper has is used again; another is made by `await work(item)`, and kept before it is handed
    on. At most `concurrency` items are under way, and they begin `one_by_one`; `ended(item)` is called once an outcome
    was taken. Raises ModelError where nothing but failures happens, and what KraqError `work` or `keeper` raises.
    """
    one_by_one = one_by_one or OneByOne()

    async def outcome_of(item: Item) -> Outcome | None:
        await one_by_one.wait()
        outcome = keeper.find(item)
        if outcome is None:
            try:
                outcome = await work(item)
            except KraqError:
                raise
            except Exception as error:  # noqa: BLE001 (what breaks an item costs it alone; the reason is kept)
                reason = reason_of(error)
                keeper.fail(item.id, reason)
                failures.add(item.name or item.id, reason, item.document)
                return None
            await keeper.keep(item, outcome)
        failures.succeed()
        return outcome

    async for outcome in bounded_map(outcome_of, items, concurrency, ended=ended):
        yield outcome
    failures.check_end()


def reason_of(error: Exception) -> str:
    """The error's class and message as the reason of a failure; of a long message, its beginning and its end."""
    reason = f"{type(error).__name__}: {error}".strip()
    half = LONGEST_REASON // 2
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:half]} […] {reason[-half:]}"


class ProgramRunner:
    """Asks programs about items with the models of a run; bounds the calls in flight over all stages."""

    def __init__(self, models: LanguageModels, progress: Progress, concurrency: int | None = None) -> None:
        """`concurrency` is that of the models' settings unless it is given."""
        self.models = models
        self.progress = progress
        self.concurrency = concurrency or models.settings.run.concurrency
        self._slots = CallSlots(self.concurrency)

    async def ask(
        self,
        stage: str,
        lm: dspy.BaseLM | None,
        program: dspy.Module,
        items: Items,
        keeper: Keeper[Done],
        *,
        journal: Journal | None = None,
        plural: str = "",
    ) -> AsyncIterator[Done]:
        """`map_kept` with a program. Its steps without a model of their own ask `lm`; where that is None, the model of
        `dspy.context` or of their role (`lms.roles.fill_in`).

        `journal` keeps the single answers of unfinished items; `plural` says in messages what the items are.
        """
        model = model_of(program, lm)
        rank = isinstance(items, AsyncIterable)  # a stage that feeds another goes before it, or both would end late
        tapped = TappedJournal(self.tell, journal)
        failures = (
            StageFailures(stage, plural)
            if plural
            else StageFailures(stage, f"items of the stage {stage!r}", model=model)
        )
        span = begin_span(f"stage {stage}", kraq__stage=stage, gen_ai__request__model=model)

        async def work(item: Item) -> Done:
            place = partial(self._slots.slot, rank)
            with span.inside():
                return Done(item.id, await run_program(program, lm, stage, item.id, item.inputs, tapped, place), model)

        at_once, ended = self._items_at_once(program, lm), when_ended(items)
        try:
            async for done in map_kept(
                work, items, keeper, failures, concurrency=at_once, ended=ended, one_by_one=self._slots.one_by_one
            ):
                self.progress.advance(stage)
                if done is not None:
                    yield done
        except BaseException as error:
            span.end(error)
            raise
        span.end()

    def tell(self, answer: Answer) -> None:
        """Progress learns what an answer took."""
        used = answer.usage
        self.progress.advance(
            answer.stage, 0, prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
        )

    def _items_at_once(self, program: dspy.Module, lm: dspy.BaseLM | None) -> int:
        """Twice as many as calls, where the engine itself takes a slot for a call."""
        models = [(predictor.lm or lm) if lm else lm_in_program(predictor) for predictor in program.predictors()]
        return self.concurrency * (2 if models and all(isinstance(model, KraqLM) for model in models) else 1)

    def close(self) -> None:
        """Nothing is held here; a runner that holds a cluster lets it go."""


async def run_program(
    program: Any,
    lm: dspy.BaseLM | None,
    stage: str,
    item_id: str,
    inputs: Mapping[str, Any],
    journal: Journal,
    place: Place | None = None,
) -> dspy.Prediction:
    """What the program makes of an item, with `flaws` where a reply behind it was cut off or could be read in part.

    Raises ValueError where an output that it declares is missing or of another type.
    """
    its_model = {} if lm is None else {"lm": lm}
    alone = dspy.context(adapter=dspy.settings.adapter or ADAPTER, disable_history=True, trace=None, **its_model)
    with working_on(stage, item_id, journal, place), alone, flaws_heard() as heard:
        prediction: dspy.Prediction = await program.acall(**inputs)
    declared = getattr(program, "outputs", {})
    for name, kind in declared.items():
        prediction[name] = type_adapter(kind).validate_python(prediction.get(name))
    return with_flaws(prediction, heard)
