"""Runs the steps that make a test set: outcomes are kept in the draft, and rejections are counted."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import dspy

from kraq_dspy.errors import EvaluationError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import OutcomesInFile, ProgramRunner, outcome_file
from kraq_dspy.workspace import Workspace


class TestsetSteps:
    """The steps of one run.

    `rejected` counts the questions that were left out, by reason. `writer` is the role that asks the questions. The
    other three are names of models: `generator` has that role, `judge` checks the questions, and `asker` puts what the
    parse asks in its own words ("" if the parse's stay).
    """

    __test__ = False

    def __init__(self, space: Workspace, draft: str | Path | None, progress: Progress) -> None:
        self.rejected: Counter[str] = Counter()
        self.writer = writer_role(space.models)
        self.generator = space.models.name(self.writer)
        is_worded = self.generator == EMBEDDED and space.models.has_own("asker")
        self.asker = space.models.name("asker") if is_worded else ""
        self.judge = space.models.name("judge")
        self._models = space.models
        path = None if draft is None else Path(draft)
        self._draft = outcome_file(path, "the draft of a test set", EvaluationError)
        self._progress = OneBarForEachStep(progress)
        self._runner = ProgramRunner(space.models, self._progress)

    async def outcomes(
        self, stage: str, role: str, program: dspy.Module, items: Sequence[Item]
    ) -> dict[str, dspy.Prediction]:
        """Return what the program made of each item, by its id; what failed is counted."""
        self._models.put_states_into(program)
        lm = self._models[role]
        keeper = OutcomesInFile(self._draft, stage, program, self._models.name(role))

        self._progress.start(stage, len(items))
        predictions = {}
        async for outcome in self._runner.ask(stage, lm, program, items, keeper):
            predictions[outcome.id] = outcome.prediction
        self._progress.finish(stage)

        self.rejected["failed"] += len(items) - len(predictions)
        return predictions

    async def accepted(
        self, stage: str, role: str, program: dspy.Module, items: Sequence[Item], before_reason: str = ""
    ) -> dict[str, dspy.Prediction]:
        """Return the outcomes of programs that reject nothing, by the item's id. What they reject is counted by the
        reason that their output `rejected` gives, with `before_reason` in front."""
        outcomes = await self.outcomes(stage, role, program, items)
        accepted = {}
        for item in items:
            outcome = outcomes.get(item.id)
            if outcome is None:
                continue
            if outcome.rejected:
                self.rejected[f"{before_reason}{outcome.rejected}"] += 1
            else:
                accepted[item.id] = outcome
        return accepted

    async def aclose(self) -> None:
        self._progress.close()
        await self._models.aclose()


class OneBarForEachStep:
    """Shows the stages of all kinds of questions, "ask fact" and "ask bridge", as one for each step, "ask".

    The kinds are worked on at the same time, batch by batch, so nobody knows how much is to come: a step has no total,
    and is finished when the run is.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._steps: dict[str, None] = {}

    def start(self, stage: str, total: int | None) -> None:
        step = _step_of(stage)
        if step not in self._steps:
            self._steps[step] = None
            self._progress.start(step, None)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self._progress.advance(_step_of(stage), done, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)

    def finish(self, stage: str) -> None:
        """Go on: other kinds may be in the same step."""

    def close(self) -> None:
        for step in self._steps:
            self._progress.finish(step)


def _step_of(stage: str) -> str:
    return stage.partition(" ")[0]


def writer_role(models: LanguageModels) -> str:
    """Return the role whose model asks the questions of a test set: "generator", unless an adapter was trained for it.

    Such an adapter writes a community's question from its summary, and nothing else.
    """
    return "default" if models.has_adapter("generator") else "generator"
