"""Defines the step of a program: a predictor with a model to fall back on."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import dspy


class Fallback(Protocol):
    """The model of a step's role; `models.lms.defaults.RoleModel` is one."""

    role: str

    def lm(self) -> Any: ...

    def filled_in(self, *, has_model: bool) -> AbstractContextManager[None]:
        """Inside, DSPy's settings have an adapter, and a model unless the step has one."""


class Step(dspy.Predict):
    """A `dspy.Predict` that asks the model of `by_role`, once that is set, where nobody named another.

    `models.lms.defaults.fill_in` sets it; without it a step is a `dspy.Predict` like any.

    >>> step = Step("question -> answer")
    """

    by_role: Fallback | None = None

    def forward(self, **inputs: Any) -> Any:
        with self._filled_in(inputs):
            return super().forward(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        with self._filled_in(inputs):
            return await super().aforward(**inputs)

    def _filled_in(self, inputs: Mapping[str, Any]) -> AbstractContextManager[None]:
        if self.by_role is None:
            return nullcontext()
        return self.by_role.filled_in(has_model=self.lm is not None or inputs.get("lm") is not None)
