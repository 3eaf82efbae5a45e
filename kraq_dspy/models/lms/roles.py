"""Gives each role its model: a model string, an address and settings, or a `dspy.LM`; unset roles are the default one.

Programs do not choose models. What is nearest decides, as everywhere in DSPy: a predictor's own model (`set_lm`), then
that of `dspy.context` or `dspy.configure`, then the model of the step's role in `kraq.toml`, then the embedded one. The
same for the adapter: a user's own is respected; without one it is KraqAdapter, which keeps documents from passing for
instructions.
"""

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol, TypeAlias

import dspy
from dspy.utils.exceptions import LMConfigurationError

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.adapter import ADAPTER
from kraq_dspy.models.lms.enforcement import verdict_on
from kraq_dspy.models.lms.engines.engine import engines
from kraq_dspy.models.lms.kraq_lm import KraqLM, adopted
from kraq_dspy.models.lms.local_models import QUESTIONS, with_adapter
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.retry import Backoff
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import EMBEDDED, QUESTIONS_BASE, ROLES, RoleSettings, Settings

logger = logging.getLogger(__name__)


def make_lm(
    settings: RoleSettings | str,
    *,
    embedder: Embedder | None = None,
    meter: Meter | None = None,
    backoff: Backoff | None = None,
) -> KraqLM:
    """Make the language model of a role or of a name: "embedded", "gguf/FILE", "openai/gpt-4o-mini".

    >>> make_lm("embedded").model
    'embedded'

    Args:
        settings: a role's settings, or the name of a model.
        embedder: the encoder of the embedded model; other models ignore it.
        meter: counts calls and tokens, and stops at limits.
        backoff: how often and how long kraq repeats a failed call.

    Returns:
        A `dspy.LM` for `program.set_lm` or `dspy.configure`.

    Raises:
        ModelError: for an unknown provider, a missing key or address, or a folder without an adapter.

    DSPy's own cache is off (`cache=False`). The key of DSPy's cache has the model's name and the request, but no
    address. So a model of the same name on another server would get the replies of the first model. kraq keeps paid
    replies in journals instead (`kraq_dspy.models.lms.meter`). DSPy's retries are off too, because kraq's engine
    retries calls.
    """
    settings = with_adapter(RoleSettings(settings) if isinstance(settings, str) else settings)
    engine, async_engine = engines(settings, embedder=embedder, meter=meter, backoff=backoff)
    try:
        return KraqLM(
            settings.model,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            cache=False,
            num_retries=0,
            engine=engine,
            async_engine=async_engine,
        )
    except LMConfigurationError as error:
        raise ModelError(f"{settings.model!r}: {error.message}") from error


class StatesOfSteps(Protocol):
    """What an optimizer made of some steps; `state.StepStates` is one."""

    def apply(self, program: dspy.Module) -> None: ...


class LanguageModels:
    """The model of each role, by the role's name.

    Args:
        settings: settings with roles. kraq makes the model of a role when the role is first used. Roles with equal
            settings share a model.
        lm: one model for all roles, or models by role, where "default" stands for the others.
        embedder: the encoder that the embedded model uses.
        meter: counts calls, and stops at limits.
        states: optimized steps to load.

    A role takes the first model that exists: the model in `lm`, the model of `dspy.context` or `dspy.configure`, the
    model in the settings, the embedded model.

    >>> LanguageModels()["answerer"].model
    'embedded'
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        lm: dspy.BaseLM | Mapping[str, dspy.BaseLM] | None = None,
        embedder: Embedder | None = None,
        meter: Meter | None = None,
        states: StatesOfSteps | None = None,
    ) -> None:
        """`states` go into the steps that ask these models (`state.StepStates`).

        Raises ConfigError for a role that does not exist, TypeError for a model that is none.
        """
        self.settings = settings or Settings()
        self.meter = meter or Meter()
        self.states = states
        self._given = _by_role(lm)
        self._embedder = embedder
        self._lms: dict[RoleSettings, KraqLM] = {}
        self._adopted: dict[int, tuple[dspy.BaseLM, KraqLM]] = {}  # by identity, with the model, so that it stays

    def __repr__(self) -> str:
        return f"LanguageModels({', '.join(f'{role}={name!r}' for role, name in self.names().items())})"

    def __getitem__(self, role: str) -> KraqLM:
        """Raises ConfigError for a role that does not exist, and what `make_lm` raises."""
        lm = self.given(role) or configured_lm()
        if lm is not None:
            return self._adopt(lm)

        settings = self._settings_of(role)
        if settings not in self._lms:
            if settings == RoleSettings():
                logger.info(
                    "No model is configured: the embedded one answers. Name one with dspy.configure(lm=...), in "
                    "kraq.toml, or with --lm."
                )
            self._lms[settings] = make_lm(settings, embedder=self._embedder, meter=self.meter)
        return self._lms[settings]

    def put_states_into(self, program: dspy.Module) -> None:
        """Give the program what the states hold of its steps."""
        if self.states is not None:
            self.states.apply(program)

    def given(self, role: str) -> KraqLM | None:
        """The model that was given for the role, or for "default". Raises ConfigError for a role that is none."""
        _require_role(role)
        lm = self._given.get(role) or self._given.get("default")
        return None if lm is None else self._adopt(lm)

    def has_own(self, role: str) -> bool:
        """Whether the role has a model of its own, given or in the settings, and not that of "default"."""
        return role in self._given or role in self.settings.roles

    def has_adapter(self, role: str) -> bool:
        """Whether an adapter, which is trained for one task, is part of the role's model in the settings."""
        if self.given(role) or configured_lm():
            return False
        settings = self._settings_of(role)
        return settings.adapter is not None or "#" in settings.model

    def names(self) -> dict[str, str]:
        """The model of every role, unset ones included: what a manifest records."""
        return {role: self.name(role) for role in ROLES}

    def name(self, role: str) -> str:
        """The name of the role's model, without making it: its key may be elsewhere."""
        lm = self.given(role) or configured_lm()
        return with_adapter(self._settings_of(role)).model if lm is None else str(lm.model)

    def schemas(self) -> dict[str, str]:
        """Tell by model, of those that were asked, whether it was under JSON schemas, and why,
        where a reply told."""
        return {lm.model: str(verdict) for lm in self._lms.values() if (verdict := verdict_on(lm))}

    def close(self) -> None:
        """Close sync connections. Those of an event loop are closed by `aclose` inside it."""
        for lm in self._lms.values():
            lm.engine.close()

    async def aclose(self) -> None:
        for lm in self._lms.values():
            await lm.async_engine.aclose()
        self.close()

    def _settings_of(self, role: str) -> RoleSettings:
        """Take the role's settings; where the smallest model does everything, it asks questions
        with its adapter."""
        settings = self.settings.role(role)
        small = settings.model == QUESTIONS_BASE and settings.adapter is None
        if role == "generator" and small and not self.has_own(role):
            return dataclasses.replace(settings, adapter=QUESTIONS)
        return settings

    def _adopt(self, lm: dspy.BaseLM) -> KraqLM:
        if id(lm) not in self._adopted:
            self._adopted[id(lm)] = lm, adopted(lm, self.meter)
        return self._adopted[id(lm)][1]


ModelsLike: TypeAlias = LanguageModels | Mapping[str, dspy.BaseLM] | dspy.BaseLM
"""Models by role, or one for all roles."""


def as_models(
    lm: ModelsLike | None, settings: Settings, *, embedder: Embedder | None = None, meter: Meter | None = None
) -> LanguageModels:
    """`lm` itself if it is LanguageModels, else the models of the settings with the given ones before them."""
    if isinstance(lm, LanguageModels):
        return lm
    return LanguageModels(settings, lm=lm, embedder=embedder, meter=meter)


def names_models(lm: ModelsLike | None) -> bool:
    """Whether every role has a model of the caller's, so that the settings' own are not asked."""
    return isinstance(lm, LanguageModels | dspy.BaseLM) or "default" in (lm or {})


def _by_role(lm: dspy.BaseLM | Mapping[str, dspy.BaseLM] | None) -> dict[str, dspy.BaseLM]:
    if isinstance(lm, dspy.BaseLM):
        return {"default": lm}
    if lm is not None and not isinstance(lm, Mapping):
        raise TypeError(f"lm is {lm!r:.80}; expected a dspy.LM, or one by role: {{'default': dspy.LM(...)}}.")
    for role, each in (lm or {}).items():
        _require_role(role)
        if not isinstance(each, dspy.BaseLM):
            raise TypeError(f"The model of the role {role!r} is {each!r:.80}; expected a dspy.LM.")
    return dict(lm or {})


def _require_role(role: str) -> None:
    if role not in ROLES:
        raise ConfigError(f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")


class RoleModel(SharedByCopies):
    """The model of a role, made when it is first asked for. Copies of a program share it."""

    def __init__(self, models: LanguageModels, role: str) -> None:
        self.models = models
        self.role = role

    def lm(self) -> KraqLM:
        return self.models[self.role]

    @contextmanager
    def filled_in(self, *, has_model: bool) -> Iterator[None]:
        """Lend what is not configured, as `Fallback` says."""
        settings: dict[str, Any] = {}
        if dspy.settings.adapter is None:
            settings["adapter"] = ADAPTER
        if not has_model and configured_lm() is None:
            settings["lm"] = self.lm()
        with dspy.context(**settings):
            yield


def fill_in(
    program: dspy.Module, models: LanguageModels, role: str = "answerer", roles: Mapping[str, str] | None = None
) -> None:
    """Make the program's steps fall back on `models`: on `role`, or on the one that `roles` has for the attribute
    which holds them. Those that fall back on a role already stay as they are; states and copies stay possible. The
    states that the models bring along are put into the program.

    A model that was given for a role (`LanguageModels(lm=...)`) is nearer than DSPy's settings: the role's steps
    get it as by `set_lm`. Predictors that are no `Step`, as in a program of somebody else's, ask DSPy's settings.
    """
    for name, predictor in program.named_predictors():
        if isinstance(predictor, Step) and predictor.by_role is None:
            predictor.by_role = RoleModel(models, (roles or {}).get(name.partition(".")[0], role))
            predictor.lm = predictor.lm or models.given(predictor.by_role.role)
    models.put_states_into(program)


def lm_in_program(predictor: dspy.Predict) -> Any:
    """The model that the predictor would ask now; None if it has none and no role to fall back on."""
    if predictor.lm is not None or not isinstance(predictor, Step) or predictor.by_role is None:
        return predictor.lm
    return configured_lm() or predictor.by_role.lm()


@contextmanager
def answerer_for(program: dspy.Module, models: LanguageModels) -> Iterator[None]:
    """Inside, predictors of a program that know no role and no model ask `models`' answerer, where DSPy's settings
    name no model. Steps that fall back on a role go on asking its model."""
    lost = [each for _, each in program.named_predictors() if lm_in_program(each) is None]
    with lent(models) if lost else nullcontext():
        yield


@contextmanager
def lent(models: LanguageModels) -> Iterator[None]:
    """Inside, whatever knows no model asks `models`' answerer, if nobody configured one with DSPy."""
    if configured_lm() is not None:
        yield
        return
    answerer = models["answerer"]
    with dspy.context(lm=answerer, kraq_lent_lm=answerer):
        yield


def configured_lm() -> Any:
    """The model of `dspy.context` or `dspy.configure`; None for one that is `lent`: a role's own is nearer."""
    lm = dspy.settings.lm
    return None if lm is dspy.settings.get("kraq_lent_lm") else lm


@contextmanager
def own_adapter() -> Iterator[None]:
    """Inside, KraqAdapter is used unless somebody configured another one."""
    with dspy.context(adapter=dspy.settings.adapter or ADAPTER):
        yield


def rule_based_models(embedder: Embedder) -> LanguageModels:
    """Models that are all the rule-based engine, whatever DSPy's settings say."""
    return LanguageModels(lm=make_lm(EMBEDDED, embedder=embedder), embedder=embedder)
