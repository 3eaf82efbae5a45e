"""Maps steps with the results of an index as the keeper: a build that was killed goes on where it stopped."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import dspy

from kraq_dspy._internal.options import type_adapter
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.models.lms.adapter import possible_forms
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress
from kraq_dspy.records import content_id
from kraq_dspy.steps.direct import Done, Item, Items, model_of
from kraq_dspy.steps.kept import ProgramRunner

Stage = tuple[str, str, dspy.Module]
"""A stage's name, its role and its program."""


class StoredSteps(ProgramRunner):
    """Maps programs over items with the models of `models`, and keeps every outcome in `results`.

    A result is found again by the item's inputs or their recipe, the program's state and the model's name; the single
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
        """By the form in which the model may be asked: one, where that is known, as it is once it was asked. They
        change with whatever the item's result depends on."""
        inputs = json.dumps(dict(item.inputs), sort_keys=True, ensure_ascii=False, default=str)
        return {form: content_id(content_id(*self._key, form), inputs) for form in self._forms()}

    def made_by(self) -> tuple[str, list[str]]:
        return content_id(*self._key), list(self._forms())

    def find(self, item: Item) -> Done | None:
        """Where only a call would tell the form, a result of either will do. What has a flaw is tried again."""
        if item.id in self._flawed:
            return None
        if item.recipe:
            for recipe in self._recipes(item).values():
                output = self._results.find_by_recipe(self._stage, item.id, recipe)
                if output is not None:
                    return self.done(item.id, output)
        for form, fingerprint in self.fingerprints(item).items():
            output = self._results.find(self._stage, item.id, fingerprint)
            if output is not None:
                self._note_recipe(item, form, fingerprint)
                return self.done(item.id, output)
        return None

    async def keep(self, item: Item, outcome: Done) -> None:
        [(form, fingerprint), *_] = self.fingerprints(item).items()
        self.save(item.id, fingerprint, encoded(self._program, outcome.prediction), outcome.prediction.get("flaws", ()))
        self._note_recipe(item, form, fingerprint)

    def _forms(self) -> tuple[str, ...]:
        forms = self._form or possible_forms(self._program, self._lm)
        if len(forms) == 1:
            self._form = forms
        return forms

    def _recipes(self, item: Item) -> dict[str, str]:
        return {form: content_id(content_id(*self._key, form), "recipe", item.recipe) for form in self._forms()}

    def _note_recipe(self, item: Item, form: str, fingerprint: str) -> None:
        if item.recipe:
            self._results.note_recipe(self._stage, item.id, self._recipes(item)[form], fingerprint)

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
