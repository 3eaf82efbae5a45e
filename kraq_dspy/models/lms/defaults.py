"""Gives a program's steps a model and an adapter where neither they nor DSPy's settings name one.

What is nearest decides, as everywhere in DSPy: a predictor's own model (`set_lm`), then that of `dspy.context` or
`dspy.configure`, then the model of the step's role in `kraq.toml`, then the embedded one. The same for the adapter: a
user's own is respected; without one it is KraqAdapter, which keeps documents from passing for instructions.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dspy

from kraq_dspy._internal.copies import SharedByCopies
from kraq_dspy._internal.nearest_demos import NearestDemos
from kraq_dspy._internal.step import Step
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

    @contextmanager
    def filled_in(self, *, has_model: bool) -> Iterator[None]:
        """As `Fallback` says."""
        settings: dict[str, Any] = {}
        if dspy.settings.adapter is None:
            settings["adapter"] = ADAPTER
        if not has_model and (dspy.settings.lm is None or _is_lent(dspy.settings.lm)):
            settings["lm"] = self.lm()
        with dspy.context(**settings):
            yield


def fill_in(
    program: dspy.Module, models: LanguageModels, role: str = "answerer", roles: Mapping[str, str] | None = None
) -> None:
    """Make the program's steps fall back on `models`: on `role`, or on the one that `roles` has for the attribute
    which holds them. Those that fall back on a role already stay as they are; states and copies stay possible.

    A model that was given for a role (`LanguageModels(models=...)`) is nearer than DSPy's settings: the role's steps
    get it as by `set_lm`. Predictors that are no `Step`, as in a program of somebody else's, ask DSPy's settings.
    """
    for name, predictor in program.named_predictors():
        step = _inner(predictor)
        if isinstance(step, Step) and step.by_role is None:
            step.by_role = RoleModel(models, (roles or {}).get(name.partition(".")[0], role))
            predictor.lm = predictor.lm or models.given(step.by_role.role)


def lm_in_program(predictor: dspy.Predict) -> Any:
    """The model that the predictor would ask now; None where it has none and no role to fall back on."""
    step = _inner(predictor)
    if predictor.lm is not None or not isinstance(step, Step) or step.by_role is None:
        return predictor.lm
    configured = dspy.settings.lm
    return configured if configured is not None and not _is_lent(configured) else step.by_role.lm()


@contextmanager
def answerer_for(program: dspy.Module, models: LanguageModels) -> Iterator[None]:
    """Inside, predictors of a program that know no role and no model ask `models`' answerer, where DSPy's settings
    name no model. Steps that fall back on a role go on asking its model."""
    lost = [each for _, each in program.named_predictors() if lm_in_program(each) is None]
    if dspy.settings.lm is not None or not lost:
        yield
        return
    answerer = models["answerer"]
    with dspy.context(lm=answerer, kraq_lent_lm=answerer):
        yield


def _is_lent(lm: Any) -> bool:
    """Whether `answerer_for` set this model, so that a role's own is nearer."""
    return lm is dspy.settings.get("kraq_lent_lm")


def _inner(predictor: dspy.Predict) -> dspy.Predict:
    """The predictor that asks: the one that a pool of demonstrations holds, or itself."""
    return predictor.predictor if isinstance(predictor, NearestDemos) else predictor


@contextmanager
def own_adapter() -> Iterator[None]:
    """Inside, KraqAdapter is used unless somebody configured another one."""
    with dspy.context(adapter=dspy.settings.adapter or ADAPTER):
        yield
