"""Defines the step of a program: a predictor with a model to fall back on, and demonstrations chosen by nearness."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import dspy

from kraq_dspy.ports import Embedder, Vectors


class Fallback(Protocol):
    """The model of a step's role; `models.lms.defaults.RoleModel` is one."""

    role: str

    def lm(self) -> Any: ...

    def filled_in(self, step: dspy.Predict) -> AbstractContextManager[None]:
        """Inside, DSPy's settings have a model and an adapter where neither they nor the step had one."""


@dataclass(frozen=True, slots=True)
class NearestDemos:
    """Chooses the `count` demonstrations of a pool that are nearest to an input; `vectors` are those of the pool."""

    count: int
    embedder: Embedder
    vectors: Vectors  # of the demos' inputs, rows L2-normalised

    def chosen(self, step: dspy.Predict, inputs: Mapping[str, Any]) -> list[Any]:
        """The nearest one last; never one with the same inputs, which would be its answer."""
        if not len(self.vectors):
            return []
        fields = list(step.signature.input_fields)
        text = _text(inputs, fields)
        [query] = self.embedder.encode_queries([text])
        order = (self.vectors @ query).argsort(kind="stable")[::-1]
        others = [int(place) for place in order if _text(step.demos[place], fields) != text]
        return [step.demos[place] for place in reversed(others[: self.count])]


class Step(dspy.Predict):
    """A `dspy.Predict` that this library can give a model to fall back on and a pool of demonstrations.

    - `by_role` (set by `lms.defaults.fill_in`) has the model that is asked where nobody named another.
    - `nearest` (set by `choose_nearest`) makes `demos` a pool: each call shows those nearest to its input. Unlike
      `dspy.KNNFewShot`, which asks the model again for demonstrations at every call and cannot be saved, the pool is
      made once.
    - `keeps_model` keeps the step's own model when an optimizer resets it.

    Safe for threads.

    >>> step = Step("question -> answer")
    """

    by_role: Fallback | None = None
    nearest: NearestDemos | None = None
    keeps_model = False

    def forward(self, **inputs: Any) -> Any:
        with self._filled_in():
            return super().forward(**self._with_demos(inputs))

    async def aforward(self, **inputs: Any) -> Any:
        with self._filled_in():
            return await super().aforward(**self._with_demos(inputs))

    def reset(self) -> None:
        lm = getattr(self, "lm", None)
        super().reset()
        if self.keeps_model:
            self.lm = lm

    def choose_nearest(self, demos: Sequence[Any], count: int, embedder: Embedder) -> None:
        """Take `demos` for the pool of which each call shows `count`."""
        if count < 1:
            raise ValueError(f"nearest is {count}; it must be 1 or more.")
        fields = list(self.signature.input_fields)
        self.demos = list(demos)
        self.nearest = NearestDemos(count, embedder, embedder.encode_queries([_text(demo, fields) for demo in demos]))

    def unlearn(self) -> None:
        """Drop the demonstrations, and the choosing among them."""
        self.demos, self.nearest = [], None

    def _filled_in(self) -> AbstractContextManager[None]:
        return nullcontext() if self.by_role is None else self.by_role.filled_in(self)

    def _with_demos(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs if self.nearest is None else {"demos": self.nearest.chosen(self, inputs), **inputs}


def with_steps(program: Any) -> Any:
    """The program with a `Step` in the place of each plain `dspy.Predict`; a predictor alone is returned as one."""
    made: dict[int, Step] = {}

    def step(part: Any) -> Any:
        if isinstance(part, list):
            return [step(one) for one in part]
        if isinstance(part, dict):
            return {key: step(one) for key, one in part.items()}
        if type(part) is not dspy.Predict:
            return part
        if id(part) not in made:
            made[id(part)] = Step.__new__(Step)
            made[id(part)].__dict__.update(part.__dict__)
        return made[id(part)]

    for _, module in program.named_sub_modules():
        for name, part in list(vars(module).items()):
            within = part if isinstance(part, list) else part.values() if isinstance(part, dict) else [part]
            if any(type(one) is dspy.Predict for one in within):
                setattr(module, name, step(part))
    return step(program)


def _text(values: Mapping[str, Any], fields: Sequence[str]) -> str:
    return "\n".join(str(values[name]) for name in fields if name in values)
