"""Gives a program's steps a model and an adapter where neither they nor DSPy's settings name one.

What is nearest decides, as everywhere in DSPy: a predictor's own model (`set_lm`), then that of `dspy.context` or
`dspy.configure`, then the model of the step's role in `kraq.toml`, then the embedded one. The same for the adapter: a
user's own is respected; without one it is KraqAdapter, which keeps documents from passing for instructions.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import dspy

from kraq_dspy._internal.copies import SharedByCopies
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.models.lms.structured.adapter import ADAPTER


class RoleModel(SharedByCopies):
    """The model of a role, made when it is first asked for. Copies of a program share it."""

    def __init__(self, models: LanguageModels, role: str) -> None:
        self.models = models
        self.role = role

    def lm(self) -> KraqLM:
        return self.models[self.role]


class PredictWithDefaults(dspy.Predict):
    """A predictor that asks the model of `by_role` where it has none and DSPy's settings have none."""

    by_role: RoleModel

    def forward(self, **inputs: Any) -> Any:
        with _filled_in(self):
            return super().forward(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        with _filled_in(self):
            return await super().aforward(**inputs)


def fill_in(
    program: dspy.Module, models: LanguageModels, role: str = "answerer", roles: Mapping[str, str] | None = None
) -> None:
    """Make the program's predictors fall back on `models`: on `role`, or on the one that `roles` has for the attribute
    which holds them. Those that fall back on a role already stay as they are; states and copies stay possible.

    A model that was given for a role (`LanguageModels(models=...)`) is nearer than DSPy's settings: the role's steps
    get it as by `set_lm`.
    """
    for name, predictor in program.named_predictors():
        if not isinstance(predictor, PredictWithDefaults):
            kind: Any = type(predictor)
            predictor.__class__ = _with_defaults(kind)
            predictor.by_role = RoleModel(models, (roles or {}).get(name.partition(".")[0], role))
            predictor.lm = predictor.lm or models.given(predictor.by_role.role)


def lm_in_program(predictor: dspy.Predict) -> Any:
    """The model that the predictor would ask now; None where it has none and no role to fall back on."""
    if predictor.lm is not None or not isinstance(predictor, PredictWithDefaults):
        return predictor.lm
    return dspy.settings.lm or predictor.by_role.lm()


@contextmanager
def own_adapter() -> Iterator[None]:
    """Inside, KraqAdapter is used unless somebody configured another one."""
    with dspy.context(adapter=dspy.settings.adapter or ADAPTER):
        yield


@contextmanager
def _filled_in(predictor: PredictWithDefaults) -> Iterator[None]:
    settings: dict[str, Any] = {}
    if dspy.settings.adapter is None:
        settings["adapter"] = ADAPTER
    if predictor.lm is None and dspy.settings.lm is None:
        settings["lm"] = predictor.by_role.lm()
    with dspy.context(**settings):
        yield


@cache
def _with_defaults(kind: Any) -> Any:
    """The predictor's class with PredictWithDefaults before it."""
    return type(kind)(kind.__name__, (PredictWithDefaults, kind), {"__module__": kind.__module__})
