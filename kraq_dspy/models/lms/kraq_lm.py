"""Lets callers of a language model meet this library's errors as themselves, and makes a `dspy.LM` of somebody else's
one of this library's: counted, limited, and kept in the journal.

Such a model stays what it is, with its key, cache, retries and history. Around it stands an engine of ours, which hands
each request on to the model as a whole.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import dspy
from dspy.lm15 import Request, Response
from dspy.utils.exceptions import LMUnexpectedError

from kraq_dspy._internal.dspy_internals import CLIENT_KEYS
from kraq_dspy.errors import KraqError
from kraq_dspy.models.lms.engines.engine import AsyncEngine, CallLedger, Engine
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.settings import RoleSettings


class KraqLM(dspy.LM):
    """A `dspy.LM` that raises this library's errors unchanged. `make_lm` makes one.

        with dspy.context(lm=make_lm("embedded")):
            dspy.Predict("question, passage -> answer")(question="Who wrote?", passage="Ada wrote notes.")

    The arguments of the constructor are those of `dspy.LM`:

    Attributes:
        model: the model string, "PROVIDER/NAME".
        model_type: "chat", "text" or "responses".
        temperature: the sampling temperature; None for the server's own.
        max_tokens: the most tokens of a reply; None for the server's own limit.
        cache: whether DSPy keeps replies in its cache.
        callbacks: DSPy's callbacks of this model.
        num_retries: how often DSPy retries a call after a transient failure.
        provider: trains and launches models for DSPy.
        finetuning_model: the model that DSPy fine-tunes, if it differs from `model`.
        launch_kwargs: arguments of the provider's launch.
        train_kwargs: arguments of the provider's training.
        use_developer_role: whether the system message has the role "developer".
        engine: makes the calls: "auto", "lm15", "litellm" or an engine object.
        async_engine: the asynchronous form of an engine object.
        prompt_cache: an object that configures the provider's cache of prompts.

    DSPy turns each error of an engine into LMUnexpectedError, and optimizers count this error as a wrong answer. But
    a run must end if the budget is spent or the server is down. So `KraqLM` raises the original error.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.around_call():
            return super().__call__(*args, **kwargs)

    @property
    def async_engine(self) -> AsyncEngine:
        """The twin of `engine` for `acall`."""
        twin: AsyncEngine = self._async_engine_spec
        return twin

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        with self.around_call():
            return await super().acall(*args, **kwargs)

    def around_call(self) -> AbstractContextManager[None]:
        """Return what a call happens in, whichever of the two forms it has."""
        return own_errors()


@contextmanager
def own_errors() -> Iterator[None]:
    """Errors of this library that DSPy wraps in the block are raised as themselves."""
    try:
        yield
    except LMUnexpectedError as error:
        cause = error.__cause__
        if isinstance(cause, KraqError):
            raise cause from cause.__cause__
        raise


_send_stream: ContextVar[Any] = ContextVar("kraq_dspy_send_stream", default=None)
"""DSPy's stream of the call at work: hidden from DSPy in `around_call`, given to the adopted model in `_unnoticed`."""


def adopted(lm: dspy.BaseLM, meter: Meter) -> KraqLM:
    """The model as a KraqLM that counts with `meter`; one that is a KraqLM already counts with its own."""
    return lm if isinstance(lm, KraqLM) else AdoptedLM(lm, meter)


class AdoptedLM(KraqLM):
    """Asks `lm` through engines of this library. What was asked is in the history of `lm`, as without it."""

    def __init__(self, lm: dspy.BaseLM, meter: Meter) -> None:
        settings = RoleSettings(model=lm.model, api_base=lm.kwargs.get("api_base") or lm.kwargs.get("base_url"))
        ledger = CallLedger(settings, f"the model {lm.model!r}", meter)
        super().__init__(
            lm.model,
            cache=False,
            num_retries=0,
            engine=Engine(WholeModel(lm), ledger),
            async_engine=AsyncEngine(AsyncWholeModel(lm), ledger),
        )
        self.kwargs = {name: value for name, value in lm.kwargs.items() if name not in CLIENT_KEYS}
        self.history = lm.history

    @contextmanager
    def around_call(self) -> Iterator[None]:
        """The model itself streams what it writes: from here, the whole answer would come in one piece."""
        token = _send_stream.set(dspy.settings.send_stream)
        try:
            with dspy.context(send_stream=None), own_errors():
                yield
        finally:
            _send_stream.reset(token)


class WholeModel:
    """A model as the inner engine of another: callbacks, usage and history are the outer one's affair."""

    def __init__(self, lm: dspy.BaseLM) -> None:
        self.lm = lm
        self.supports_response_schema = bool(lm.supports_response_schema)

    def complete(self, request: Request) -> Response:
        with _unnoticed():
            response: Response = self.lm(request)
        return response


class AsyncWholeModel(WholeModel):
    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        with _unnoticed():
            lm = self.lm
            if isinstance(lm, dspy.LM) and lm._async_engine_spec is None and not isinstance(lm.engine, str):
                return await asyncio.to_thread(lm, request)
            response: Response = await lm.acall(request)
        return response


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Errors of this library, which the model's own engine may raise, pass as themselves."""
    alone = dspy.context(send_stream=_send_stream.get(), callbacks=[], usage_tracker=None, disable_history=True)
    with alone, own_errors():
        yield
