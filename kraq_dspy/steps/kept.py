"""Maps work over items and keeps every outcome before the next: how each long run fails, gives up and goes on.

An item that fails costs itself alone: its reason is kept, it is left out, and the next run tries it again. Where
nothing but failures happens the fault is not in the items, and the run ends with one message. What must end a run (a
spent budget, a server that is down) is a KraqError, and does. So a run that was interrupted, in whatever way, is
started again with the same command, and asks only for what is missing.

Where outcomes stay is a `Keeper`'s affair: the results of an index (`StageResults`), an FAQ cache, a file of JSON lines
(`OutcomesInFile`).
What runs in threads (the tables of `eval/`) shares `failures.StageFailures` and `concurrency.as_done`.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import dspy

from kraq_dspy._internal.options import type_adapter
from kraq_dspy._internal.step import without_advice
from kraq_dspy.asset.store.own_files import require_descriptors
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.embedded_model import analyst
from kraq_dspy.errors import KraqError, lacks_files, lacks_room
from kraq_dspy.models.lms.adapter import ADAPTER
from kraq_dspy.models.lms.envelope import cut_off, flaws_heard, with_flaws
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import Answer, Journal, Place, TappedJournal, working_on
from kraq_dspy.models.lms.roles import LanguageModels, lm_in_program
from kraq_dspy.ports import Progress
from kraq_dspy.records import content_id
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.steps.bounded import bounded_map
from kraq_dspy.steps.direct import Done, Item, Items, limit_of, lm_of, model_of, when_ended
from kraq_dspy.steps.failures import StageFailures
from kraq_dspy.steps.journal import JournalFile

logger = logging.getLogger(__name__)

LONGEST_REASON = 600  # characters; what other libraries raise may quote a whole reply


class Keeper(Protocol):
    """Where the outcomes of a stage stay."""

    def find(self, item: Item) -> Done | None:
        """Return what an earlier run kept for the item; None if it is still to be done."""

    async def keep(self, item: Item, outcome: Done) -> None:
        """The outcome is on disk when this returns."""

    def fail(self, item_id: str, reason: str) -> None:
        """Note why the item has no outcome."""


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
        self._slots = asyncio.Semaphore(self.concurrency)

    async def ask(
        self,
        stage: str,
        lm: dspy.BaseLM | None,
        program: dspy.Module,
        items: Items,
        keeper: Keeper,
        *,
        journal: Journal | None = None,
        plural: str = "",
    ) -> AsyncIterator[Done]:
        """Yield what the program makes of every item, in any order; an item that failed is left
        out.

        An outcome that the keeper has is used again; another is kept before it is handed on. The program's steps
        without a model of their own ask `lm`; if that is None, the model of `dspy.context` or of their role
        (`models.lms.roles.fill_in`). `journal` keeps the single answers of unfinished items; `plural` says in messages
        what the items are. Raises ModelError if nothing but failures happens, and what KraqError comes.
        """
        model = model_of(program, lm)
        tapped = TappedJournal(self.tell, journal)
        failures = StageFailures(stage, plural or f"items of the stage {stage!r}", model="" if plural else model)

        async def outcome_of(item: Item) -> Done | None:
            done = keeper.find(item)
            if done is None:
                try:
                    made = await run_program(program, lm, stage, item.id, item.inputs, tapped, lambda: self._slots)
                except KraqError:
                    raise
                except Exception as error:
                    if (of_files := lacks_files(error)) is not None:
                        require_descriptors(of_files)  # the machine's fault, not that of the item or its model
                    if (of_room := lacks_room(error)) is not None:
                        raise of_room from error
                    reason = reason_of(error)
                    keeper.fail(item.id, reason)
                    failures.add(item.name or item.id, reason, item.document)
                    return None
                done = Done(item.id, made, model)
                await keeper.keep(item, done)

            failures.succeed()
            return done

        models = [(predictor.lm or lm) if lm else lm_in_program(predictor) for predictor in program.predictors()]
        takes_slots = bool(models) and all(isinstance(model, KraqLM) for model in models)  # the engine, for a call
        at_once = self.concurrency * (2 if takes_slots else 1)
        async for done in bounded_map(outcome_of, items, at_once, after_each=when_ended(items)):
            self.progress.advance(stage)
            if done is not None:
                yield done
        failures.check_end()

    def tell(self, answer: Answer) -> None:
        """Progress learns what an answer took."""
        used = answer.usage
        self.progress.advance(
            answer.stage, 0, prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
        )

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
    """Return what the program makes of an item, with `flaws` where a reply behind it was cut off or
    could be read in part.

    Raises ValueError if an output that it declares is missing or of another type.
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
        self.models.put_states_into(program)
        lm = self.models[role]
        max_tokens = limit_of(lm_of(program, lm))
        keeper = StageResults(self.results, stage, program, model_of(program, lm), max_tokens)
        async for done in self.ask(stage, lm, program, items, keeper, journal=self.results):
            yield done

    def is_settled(self, name: str, *stages: Stage, settings: str = "") -> bool:
        """Whether `settle` was told that all results of the stages are as they would be made now."""
        return self.results.settled(name) == self._made_by(stages, settings)

    def settle(self, name: str, *stages: Stage, settings: str = "") -> None:
        """Note that all results of the stages are there, or will be asked for whatever this says."""
        self.results.settle(name, self._made_by(stages, settings))

    def _made_by(self, stages: Sequence[Stage], settings: str) -> str:
        """Return what results depend on beside their inputs."""
        keys = [made_by(stage, program, model_of(program, self.models[role])) for stage, role, program in stages]
        return json.dumps([settings, *keys])

    def model(self, role: str, program: dspy.Module) -> str:
        own = next((predictor.lm for predictor in program.predictors() if predictor.lm is not None), None)
        return self.models.name(role) if own is None else str(own.model)


class StageOutcomes:
    """The outcomes of one stage: what each depends on, and how it is read back. Every `Keeper` of them begins here."""

    def __init__(self, stage: str, program: dspy.Module, model: str) -> None:
        self._stage = stage
        self._program: Any = program
        self._model = model
        self._made_by = made_by(stage, program, model)

    def fingerprint(self, item: Item) -> str:
        """Changes with whatever the item's outcome depends on."""
        inputs = json.dumps(dict(item.inputs), sort_keys=True, ensure_ascii=False, default=str)
        return content_id(self._made_by, inputs)

    def done(self, item_id: str, output: dict[str, Any]) -> Done:
        """The inverse of `encoded`."""
        kinds = self._program.outputs.items()
        values = {name: type_adapter(kind).validate_python(output[name]) for name, kind in kinds}
        return Done(item_id, dspy.Prediction(**values), self._model)


OutcomeFile = JournalFile[str, dict[str, Any]]
"""What steps made, as JSON values, by what it depends on."""


def outcome_file(path: Path | None, what: str, failure: type[KraqError]) -> OutcomeFile:
    """The file of a run's outcomes; see `JournalFile`."""
    return JournalFile(path, lambda line: (line["key"], line["output"]), what, failure)


class OutcomesInFile(StageOutcomes):
    """The outcomes of one stage in a file of a run: a `Keeper`. An item that failed is asked again by the next run."""

    def __init__(self, file: OutcomeFile, stage: str, program: dspy.Module, model: str) -> None:
        super().__init__(stage, program, model)
        self._file = file

    def find(self, item: Item) -> Done | None:
        output = self._file.get(self.fingerprint(item))
        return None if output is None else self.done(item.id, output)

    async def keep(self, item: Item, outcome: Done) -> None:
        self._file.keep({"key": self.fingerprint(item), "output": encoded(self._program, outcome.prediction)})

    def fail(self, item_id: str, reason: str) -> None:
        """It is counted by who asked; nothing is kept."""


class FoundResults(StageOutcomes):
    """The results of one stage in an index, which are looked up and never changed: a `Keeper`."""

    def __init__(
        self, results: ResultStore, stage: str, program: dspy.Module, model: str, max_tokens: int | None = None
    ) -> None:
        """`max_tokens` is the limit of the model's replies."""
        super().__init__(stage, program, model)
        self._results = results
        as_now = _kept_because([cut_off(max_tokens)])  # another call would be cut off as well
        self._flawed = {failure.item_id for failure in results.failures(stage) if failure.reason != as_now}

    def find(self, item: Item) -> Done | None:
        """Find a kept result; what has a flaw is tried again, but not a reply that was cut off at
        the limit which is still set."""
        if item.id in self._flawed:
            return None
        output = self._results.find(self._stage, item.id, self.fingerprint(item))
        return None if output is None else self.done(item.id, output)

    async def keep(self, item: Item, outcome: Done) -> None:
        """Nothing is kept."""

    def fail(self, item_id: str, reason: str) -> None:
        """Nothing is kept."""


class StageResults(FoundResults):
    """The results of one stage in an index, which grow: a `Keeper`."""

    async def keep(self, item: Item, outcome: Done) -> None:
        output = encoded(self._program, outcome.prediction)
        self.save(item.id, self.fingerprint(item), output, outcome.prediction.get("flaws", ()))

    def fail(self, item_id: str, reason: str) -> None:
        self._results.fail(self._stage, item_id, reason)

    def save(self, item_id: str, fingerprint: str, output: dict[str, Any], flaws: Sequence[str] = ()) -> None:
        """`output` as `encoded` gives it. With `flaws` the item counts as failed too: what is there is kept, and the
        next run tries again, as `find` says."""
        flaw = _kept_because(flaws) if flaws else ""
        self._results.save(self._stage, item_id, fingerprint, output, model=self._model, flaw=flaw)


def _kept_because(flaws: Sequence[str]) -> str:
    return f"Kept as far as it goes: {'; '.join(flaws)}"


def encoded(program: Any, prediction: dspy.Prediction) -> dict[str, Any]:
    """The outputs that the program declares, as JSON values."""
    kinds = program.outputs.items()
    return {name: type_adapter(kind).dump_python(prediction[name], mode="json") for name, kind in kinds}


def made_by(stage: str, program: dspy.Module, model: str) -> str:
    """Return what the results of a stage depend on beside their inputs: the program, the model's
    name and the adapter; of the embedded model also how it reads."""
    model = f"{model}, {analyst().made_by()}" if model == EMBEDDED else model
    adapter = type(dspy.settings.adapter or ADAPTER).__name__
    return content_id(stage, program_key(program), model, adapter)


def program_key(program: dspy.Module) -> str:
    """Depends on what the program asks for (instructions, fields, demonstrations, settings), not on its models."""
    state = {
        name: {key: value for key, value in predictor.dump_state().items() if key not in ("lm", "traces", "train")}
        for name, predictor in program.named_predictors()
    }
    settings = {name: value for name, value in vars(program).items() if isinstance(value, str | int | float | bool)}
    return json.dumps([type(program).__qualname__, state, settings], sort_keys=True, default=str)
