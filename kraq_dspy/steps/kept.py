"""Maps work over items and keeps every outcome before the next: how each long run fails, gives up and goes on.

An item that fails costs itself alone: its reason is kept, it is left out, and the next run tries it again. Where
nothing but failures happens the fault is not in the items, and the run ends with one message. What must end a run (a
spent budget, a server that is down) is a KraqError, and does. So a run that was interrupted, in whatever way, is
started again with the same command, and asks only for what is missing.

Where outcomes stay is a `Keeper`'s affair: the results of an index (`StageResults`), a catalogue, a file of JSON lines.
What runs in threads (the tables of `eval/`) shares `StageFailures` and `concurrency.as_done`.
"""

import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import dspy

from kraq_dspy._internal.options import type_adapter
from kraq_dspy._internal.step import without_advice
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.errors import KraqError, ModelError
from kraq_dspy.models.lms.adapter import ADAPTER, possible_forms
from kraq_dspy.models.lms.envelope import flaws_heard, with_flaws
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Answer, Journal, Place, TappedJournal, working_on
from kraq_dspy.models.lms.roles import LanguageModels, lm_in_program
from kraq_dspy.ports import Progress
from kraq_dspy.records import content_id
from kraq_dspy.steps.direct import CallSlots, Done, Item, Items, OneByOne, bounded_map, model_of, when_ended

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
    reason = f"{type(error).__name__}: {without_advice(error)}".strip()
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
        `dspy.context` or of their role (`models.lms.roles.fill_in`).

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

        async def work(item: Item) -> Done:
            place = partial(self._slots.slot, rank)
            return Done(item.id, await run_program(program, lm, stage, item.id, item.inputs, tapped, place), model)

        at_once, ended = self._items_at_once(program, lm), when_ended(items)
        async for done in map_kept(
            work, items, keeper, failures, concurrency=at_once, ended=ended, one_by_one=self._slots.one_by_one
        ):
            self.progress.advance(stage)
            if done is not None:
                yield done

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


Stage = tuple[str, str, dspy.Module]
"""A stage's name, its role and its program."""


class StoredSteps(ProgramRunner):
    """Maps programs over items with the models of `models`, and keeps every outcome in `results`.

    A result is found again by the item's inputs, the program's state and the model's name; the single
    answers of an item that was interrupted are found in the journal. An item that fails is recorded with its reason and
    left out; it is tried again in the next run. Raises ModelError when a stage only fails, and lets KraqError (a spent
    budget, a server that is down) end the run.
    """

    def __init__(
        self, results: ResultStore, models: LanguageModels, progress: Progress, concurrency: int | None = None
    ) -> None:
        super().__init__(models, progress, concurrency)
        self.results = results

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        if total is not None:
            self.progress.start(stage, total)
        lm = self.models[role]
        keeper = StageResults(self.results, stage, program, model_of(program, lm), lm)
        async for done in self.ask(stage, lm, program, items, keeper, journal=self.results):
            yield done

    def is_settled(self, name: str, *stages: Stage, settings: str = "") -> bool:
        """Whether `settle` was told that all results of the stages are as they would be made now."""
        settled, now = json.loads(self.results.settled(name) or "{}"), self._made_by(stages, settings)
        return (
            bool(settled)
            and settled["made_by"] == now["made_by"]
            and all(set(of) <= set(may) for of, may in zip(settled["forms"], now["forms"], strict=True))
        )

    def settle(self, name: str, *stages: Stage, settings: str = "") -> None:
        """Note that all results of the stages are there, or will be asked for whatever this says."""
        self.results.settle(name, json.dumps(self._made_by(stages, settings)))

    def _made_by(self, stages: Sequence[Stage], settings: str) -> dict[str, list[Any]]:
        """What results depend on beside their inputs, and the forms in which the models may be asked."""
        keepers = []
        for stage, role, program in stages:
            lm = self.models[role]
            keepers.append(StageResults(self.results, stage, program, model_of(program, lm), lm).made_by())
        return {"made_by": [settings, *(key for key, _ in keepers)], "forms": [forms for _, forms in keepers]}

    def model(self, role: str, program: dspy.Module) -> str:
        own = next((predictor.lm for predictor in program.predictors() if predictor.lm is not None), None)
        return self.models.name(role) if own is None else str(own.model)


class StageResults:
    """The results of one stage in an index: a `Keeper`."""

    def __init__(
        self, results: ResultStore, stage: str, program: dspy.Module, model: str, lm: dspy.BaseLM | None
    ) -> None:
        self._results = results
        self._stage = stage
        self._program: Any = program
        self._model = model
        self._lm = lm
        self._key = stage, program_key(program), model
        self._form: tuple[str, ...] = ()  # once it is known
        self._flawed = {failure.item_id for failure in results.failures(stage)}

    def fingerprints(self, item: Item) -> dict[str, str]:
        """The fingerprints by the form in which the model may be asked: one, where that is known. They change with
        whatever the item's result depends on."""
        inputs = json.dumps(dict(item.inputs), sort_keys=True, ensure_ascii=False, default=str)
        return {form: content_id(content_id(*self._key, form), inputs) for form in self._forms()}

    def made_by(self) -> tuple[str, list[str]]:
        return content_id(*self._key), list(self._forms())

    def find(self, item: Item) -> Done | None:
        """Where only a call would tell the form, a result of either will do. What has a flaw is tried again."""
        if item.id in self._flawed:
            return None
        for fingerprint in self.fingerprints(item).values():
            output = self._results.find(self._stage, item.id, fingerprint)
            if output is not None:
                return self.done(item.id, output)
        return None

    async def keep(self, item: Item, outcome: Done) -> None:
        fingerprint = next(iter(self.fingerprints(item).values()))
        self.save(item.id, fingerprint, encoded(self._program, outcome.prediction), outcome.prediction.get("flaws", ()))

    def _forms(self) -> tuple[str, ...]:
        forms = self._form or possible_forms(self._program, self._lm)
        if len(forms) == 1:
            self._form = forms
        return forms

    def fail(self, item_id: str, reason: str) -> None:
        self._results.fail(self._stage, item_id, reason)

    def save(self, item_id: str, fingerprint: str, output: dict[str, Any], flaws: Sequence[str] = ()) -> None:
        """`output` as `encoded` gives it. With `flaws` the item counts as failed too: what is there is kept, and the
        next run tries again."""
        flaw = f"Kept as far as it goes: {'; '.join(flaws)}" if flaws else ""
        self._results.save(self._stage, item_id, fingerprint, output, model=self._model, flaw=flaw)

    def done(self, item_id: str, output: dict[str, Any]) -> Done:
        """The inverse of `encoded`."""
        kinds = self._program.outputs.items()
        values = {name: type_adapter(kind).validate_python(output[name]) for name, kind in kinds}
        return Done(item_id, dspy.Prediction(**values), self._model)


def encoded(program: Any, prediction: dspy.Prediction) -> dict[str, Any]:
    """The outputs that the program declares, as JSON values."""
    kinds = program.outputs.items()
    return {name: type_adapter(kind).dump_python(prediction[name], mode="json") for name, kind in kinds}


def program_key(program: dspy.Module) -> str:
    """Depends on what the program asks for (instructions, fields, demonstrations, settings), not on its models."""
    state = {
        name: {key: value for key, value in predictor.dump_state().items() if key not in ("lm", "traces", "train")}
        for name, predictor in program.named_predictors()
    }
    settings = {name: value for name, value in vars(program).items() if isinstance(value, str | int | float | bool)}
    return json.dumps([type(program).__qualname__, state, settings], sort_keys=True, default=str)
