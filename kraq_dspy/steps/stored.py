"""Steps whose results are kept: each is committed as it arrives, so a run that was killed goes on where it stopped."""

import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from functools import cache, partial
from typing import Any

import dspy
from pydantic import TypeAdapter

from kraq_dspy.errors import KraqError, ModelError
from kraq_dspy.lms import spans
from kraq_dspy.lms.journal import Journal, working_on
from kraq_dspy.lms.roles import KraqLM, LanguageModels
from kraq_dspy.ports import Progress, place_for_call
from kraq_dspy.records import Usage, content_id
from kraq_dspy.steps.direct import Done, Item, Items, Places, bounded_map, model_of
from kraq_dspy.stores.results import ResultStore

logger = logging.getLogger(__name__)

GIVE_UP_AFTER = 25  # failures in a row, without one success in the stage: the fault is not in the items


class StoredSteps:
    """Maps programs over items with the models of `models`, and keeps every outcome in `results`.

    A result is found again by the item's inputs, the program's state and the model's name. An item that fails is
    recorded with its reason and left out; it is tried again in the next run. Raises ModelError when a stage only fails,
    and lets KraqError (a spent budget, a server that is down) end the run.
    """

    def __init__(
        self, results: ResultStore, models: LanguageModels, adapter: dspy.Adapter, progress: Progress, concurrency: int
    ) -> None:
        self.results = results
        self.models = models
        self.adapter = adapter
        self.progress = progress
        self.concurrency = concurrency
        self._places = Places(concurrency)

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        lm = self.models[role]
        with dspy.context(lm=lm):
            model = model_of(program)
        kept = KeptStage(self.results, self.progress, self.adapter, stage, program, model)
        rank = isinstance(items, AsyncIterable)  # a stage that feeds another goes before it, or both would end late

        async def work(item: Item) -> Done | None:
            fingerprint = kept.fingerprint(item)
            stored = kept.find(item.id, fingerprint)
            if stored is not None:
                return stored
            place_for_call.set(partial(self._places.one, rank))  # of this item's task alone
            with span.inside():
                values, reason = await outcome(program, lm, self.adapter, stage, item.id, item.inputs, kept.journal)
            if values is None:
                kept.fail(item.id, reason)
                return None
            kept.save(item.id, fingerprint, encode(program, values))
            return Done(item.id, dspy.Prediction(**values), model)

        if total is not None:
            self.progress.start(stage, total)
        span = spans.begin(f"stage {stage}", kraq__stage=stage, gen_ai__request__model=model)
        try:
            async for done in bounded_map(work, items, self._items_at_once(program, lm)):
                self.progress.advance(stage)
                if done is not None:
                    yield done
            kept.check_end()
        except BaseException as error:
            span.end(error)
            raise
        span.end()

    def _items_at_once(self, program: dspy.Module, lm: dspy.BaseLM) -> int:
        """Twice as many as calls, where the engine itself takes a place for a call."""
        asked = [predictor.lm or lm for _, predictor in program.named_predictors()]
        return self.concurrency * (2 if all(isinstance(model, KraqLM) for model in asked) else 1)

    def close(self) -> None:
        """Nothing is held here; steps that hold a cluster let it go."""


class KeptStage:
    """The outcomes of one stage in the store: looked up, saved, or noted as failed."""

    def __init__(
        self,
        results: ResultStore,
        progress: Progress,
        adapter: dspy.Adapter,
        stage: str,
        program: dspy.Module,
        model: str,
    ) -> None:
        self.journal = WatchedJournal(results, progress)
        self._results = results
        self._stage = stage
        self._program = program
        self._model = model
        self._key = content_id(stage, program_key(program), model, type(adapter).__name__)
        self._failures = _FailuresInARow(stage, model)

    def fingerprint(self, item: Item) -> str:
        """Changes with whatever the item's result depends on."""
        return content_id(self._key, json.dumps(item.inputs, sort_keys=True, ensure_ascii=False, default=str))

    def find(self, item_id: str, fingerprint: str) -> Done | None:
        stored = self._results.find(self._stage, item_id, fingerprint)
        if stored is None:
            return None
        self._failures.clear()
        return Done(item_id, decode(self._program, stored), self._model)

    def save(self, item_id: str, fingerprint: str, output: dict[str, Any]) -> None:
        """`output` as `encode` gives it."""
        self._failures.clear()
        self._results.save(self._stage, item_id, fingerprint, output, model=self._model)

    def fail(self, item_id: str, reason: str) -> None:
        """Raises ModelError when nothing but failures happened for long."""
        said = {"stage": self._stage, "item": item_id, "reason": reason}
        logger.warning("%s of %s failed: %s", self._stage, item_id, reason, extra=said)
        self._results.fail(self._stage, item_id, reason)
        self._failures.add(reason)

    def check_end(self) -> None:
        """Raises ModelError when every item failed."""
        self._failures.check_end()


async def outcome(
    program: Any,
    lm: dspy.BaseLM,
    adapter: dspy.Adapter,
    stage: str,
    item_id: str,
    inputs: Mapping[str, Any],
    journal: Journal,
) -> tuple[dict[str, Any] | None, str]:
    """What the program made of an item, checked, by name; or None, and why. Lets KraqError through."""
    try:
        alone = dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None)
        with working_on(stage, item_id, journal), alone:
            return checked(program, await program.acall(**inputs)), ""
    except KraqError:
        raise
    except Exception as error:  # noqa: BLE001 (an answer that breaks something costs its item; the reason is kept)
        return None, f"{type(error).__name__}: {error}"


class WatchedJournal:
    """The journal, with every answer that it is given told to the progress display."""

    def __init__(self, results: ResultStore, progress: Progress) -> None:
        self.recall = results.recall
        self._results = results
        self._progress = progress

    def remember(
        self, stage: str, item_id: str, request_hash: str, response_json: str, *, model: str, usage: Usage
    ) -> None:
        self._results.remember(stage, item_id, request_hash, response_json, model=model, usage=usage)
        self._progress.advance(stage, 0, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


class _FailuresInARow:
    """Ends a stage in which nothing but failures happens."""

    def __init__(self, stage: str, model: str) -> None:
        self.stage = stage
        self.model = model
        self.count = 0
        self.succeeded = False
        self.last = ""

    def clear(self) -> None:
        self.succeeded = True

    def add(self, reason: str) -> None:
        self.count += 1
        self.last = reason
        if self.count >= GIVE_UP_AFTER and not self.succeeded:
            self._give_up(f"The first {self.count} items")

    def check_end(self) -> None:
        if self.count and not self.succeeded:
            self._give_up(f"All {self.count} items")

    def _give_up(self, which: str) -> None:
        raise ModelError(
            f"{which} of the stage {self.stage!r} failed with the model {self.model!r}; the last reason: {self.last}. "
            "Mend that and run the same command again: what was done is kept."
        )


def program_key(program: dspy.Module) -> str:
    """Depends on what the program asks for (instructions, fields, demonstrations, settings), not on its models."""
    state = {name: _without_lm(predictor.dump_state()) for name, predictor in program.named_predictors()}
    settings = {name: value for name, value in vars(program).items() if isinstance(value, str | int | float | bool)}
    return json.dumps([type(program).__qualname__, state, settings], sort_keys=True, default=str)


def checked(program: Any, prediction: dspy.Prediction) -> dict[str, Any]:
    """The program's `outputs` by name. Raises ValueError for one that is missing or of another type."""
    return {name: _adapter(kind).validate_python(prediction.get(name)) for name, kind in program.outputs.items()}


def encode(program: Any, values: dict[str, Any]) -> dict[str, Any]:
    """As JSON values."""
    return {name: _adapter(kind).dump_python(values[name], mode="json") for name, kind in program.outputs.items()}


def decode(program: Any, output: dict[str, Any]) -> dspy.Prediction:
    """The inverse of `encode`."""
    values = {name: _adapter(kind).validate_python(output[name]) for name, kind in program.outputs.items()}
    return dspy.Prediction(**values)


def _without_lm(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in ("lm", "traces", "train")}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
