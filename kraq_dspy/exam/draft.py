"""Keeps what a test set took on its way, so that an interrupted run goes on: a JSON line for each outcome of a step."""

import json
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.files import append_line, drop_torn_line, json_objects
from kraq_dspy._internal.options import type_adapter
from kraq_dspy.errors import EvaluationError
from kraq_dspy.records import content_id
from kraq_dspy.steps.direct import Done, Item
from kraq_dspy.steps.kept import encoded, made_by


class TestsetDraft:
    """Outcomes by what they depend on, in a file; in memory alone without one."""

    __test__ = False

    def __init__(self, path: Path | None) -> None:
        """Raises EvaluationError for a file that cannot be read."""
        self.path = path
        self._outputs: dict[str, dict[str, Any]] = {}
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            drop_torn_line(path)
            for _, line in json_objects(path, EvaluationError, "the draft of a test set"):
                self._outputs[line["key"]] = line["output"]

    def __len__(self) -> int:
        return len(self._outputs)

    def find(self, key: str) -> dict[str, Any] | None:
        return self._outputs.get(key)

    def keep(self, key: str, output: dict[str, Any]) -> None:
        self._outputs[key] = output
        if self.path is not None:
            append_line(self.path, json.dumps({"key": key, "output": output}, ensure_ascii=False))

    def keeper(self, stage: str, program: dspy.Module, model: str) -> "StepDraft":
        """Keep the replies of one step of the run."""
        return StepDraft(self, stage, program, model)

    def close(self) -> None:
        """Nothing is held open."""


class StepDraft:
    """The outcomes of one step: a `steps.kept.Keeper`. An item that failed is asked again by the next run."""

    def __init__(self, draft: TestsetDraft, stage: str, program: dspy.Module, model: str) -> None:
        self._draft = draft
        self._program: Any = program
        self._model = model
        self._made_by = made_by(stage, program, model)

    def find(self, item: Item) -> Done | None:
        output = self._draft.find(self._key(item))
        if output is None:
            return None
        kinds = self._program.outputs.items()
        values = {name: type_adapter(kind).validate_python(output[name]) for name, kind in kinds}
        return Done(item.id, dspy.Prediction(**values), self._model)

    async def keep(self, item: Item, outcome: Done) -> None:
        self._draft.keep(self._key(item), encoded(self._program, outcome.prediction))

    def fail(self, item_id: str, reason: str) -> None:
        """It is counted by who asked; nothing is kept."""

    def _key(self, item: Item) -> str:
        inputs = json.dumps(dict(item.inputs), sort_keys=True, ensure_ascii=False, default=str)
        return content_id(self._made_by, inputs)
