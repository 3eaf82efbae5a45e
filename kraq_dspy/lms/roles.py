"""Gives each role its model: a model string, an address and settings; unset roles are the default one.

Programs do not choose models: they are run in `dspy.context(lm=models["answerer"])`, or given one with `set_lm`.
"""

from typing import Any

import dspy
from dspy.utils.exceptions import LMConfigurationError, LMUnexpectedError

from kraq_dspy.backoff import Backoff
from kraq_dspy.config import ROLES, RoleSettings, Settings
from kraq_dspy.errors import ConfigError, KraqError, ModelError
from kraq_dspy.lms.adapter_name import with_adapter
from kraq_dspy.lms.engines.engine import AsyncEngine, engines
from kraq_dspy.lms.meter import Meter
from kraq_dspy.ports import Embedder


class KraqLM(dspy.LM):
    """A `dspy.LM` whose callers meet this library's errors as themselves.

    DSPy wraps what an engine raises into LMUnexpectedError; a spent budget or a server that is down must not look like
    a failure of one call.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except LMUnexpectedError as error:
            _raise_own(error)
            raise

    @property
    def async_engine(self) -> AsyncEngine:
        """The twin of `engine` for `acall`."""
        twin: AsyncEngine = self._async_engine_spec
        return twin

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super().acall(*args, **kwargs)
        except LMUnexpectedError as error:
            _raise_own(error)
            raise


def _raise_own(error: LMUnexpectedError) -> None:
    cause = error.__cause__
    if isinstance(cause, KraqError):
        raise cause from cause.__cause__


def make_lm(
    settings: RoleSettings,
    *,
    embedder: Embedder | None = None,
    meter: Meter | None = None,
    backoff: Backoff | None = None,
) -> KraqLM:
    """The language model of a role. `embedder` helps the embedded model; others ignore it.

    DSPy's own cache is off (`cache=False`): its key is the model's name and the request, without the address, so the
    same name on another server, or after other weights were loaded, would give stale answers. The journal of the item
    at work (`kraq_dspy.lms.journal`) keeps what must not be paid twice. DSPy's retries are off too: the engine has its
    own. An adapter's name and the hash of its weights are in the model's name (`lms.adapter_name`).

    Raises ModelError for an unknown provider, a missing key or address, and a folder that holds no adapter.
    """
    settings = with_adapter(settings)
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


class LanguageModels:
    """The models of all roles by name; roles with equal settings share one. They are made when first asked for."""

    told_of_default = False  # that no model is configured is logged once

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | None = None,
        meter: Meter | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.settings = settings
        self.meter = meter or Meter()
        self._embedder = embedder
        self._backoff = backoff
        self._made: dict[RoleSettings, KraqLM] = {}

    def __getitem__(self, role: str) -> KraqLM:
        """Raises ConfigError for a role that does not exist, and what `make_lm` raises."""
        if role not in ROLES:
            raise ConfigError(f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")
        settings = self.settings.role(role)
        if settings not in self._made:
            self._made[settings] = make_lm(settings, embedder=self._embedder, meter=self.meter, backoff=self._backoff)
        return self._made[settings]

    def names(self) -> dict[str, str]:
        """The model of every role, unset ones included: what a manifest records."""
        return {role: with_adapter(self.settings.role(role)).model for role in ROLES}

    def close(self) -> None:
        """Close sync connections. Those of an event loop are closed by `aclose` inside it."""
        for lm in self._made.values():
            lm.engine.close()

    async def aclose(self) -> None:
        for lm in self._made.values():
            await lm.async_engine.aclose()
        self.close()
