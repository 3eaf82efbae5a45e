"""Chooses the client that speaks to a model server: DSPy's native lm15 where it knows the provider, else LiteLLM.

Only LiteLLM's providers import LiteLLM (seconds and 200 MB).
"""

import asyncio
import dataclasses
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from dspy.lm15 import LM15Error, Request, Response, RouterConfig

from kraq_dspy._internal.dspy_internals import AsyncLiteLLMEngine, AsyncLM15Engine, lookup
from kraq_dspy.asset.consent import own_variables, require_no_secret
from kraq_dspy.errors import MissingExtraError, ModelError, did_you_mean
from kraq_dspy.models.lms.limited_transport import LimitedTransport
from kraq_dspy.models.lms.retry import unreachable
from kraq_dspy.settings import RoleSettings

NATIVE = ("hosted_vllm", "openai", "ollama", "ollama_chat", "anthropic", "gemini", "groq", "openrouter", "deepseek")
"""Provider prefixes worth naming in an error; lm15 decides which are native."""


Route = tuple[str, Any]
"""How a model is reached: the name of its server for messages, and a client for any event loop."""


def route_of(settings: RoleSettings) -> Route:
    """Connection to the server of a role, or to several. Raises ModelError as `route` does."""
    if len(settings.addresses) < 2:
        return route(settings)
    ways = [route(dataclasses.replace(settings, api_base=address)) for address in settings.addresses]
    return " and ".join(where for where, _ in ways), SeveralServers(ways)


def route(settings: RoleSettings) -> Route:
    """To one server. Raises ModelError for a provider that is unknown, or that lacks its key or address."""
    require_no_secret(settings.api_base or "", f"The api_base of {settings.model!r}")
    prefix, _, name = settings.model.partition("/")
    if prefix == "vllm":
        raise ModelError(
            f"{settings.model!r}: 'vllm/' would load the model into this process. Start vLLM as a server and write "
            f'"hosted_vllm/{name}" with api_base = "http://HOST:8000/v1".'
        )
    if prefix == "hosted_vllm" and not settings.api_base:
        raise ModelError(f'{settings.model!r} needs the server\'s address: api_base = "http://HOST:8000/v1".')
    if not name:
        raise ModelError(_unknown(settings.model, NATIVE))

    try:
        resolution = AsyncLM15Engine(RouterConfig(env={})).resolve(settings.model)
    except LM15Error:
        return _litellm(settings)
    return _native(settings, resolution.provider)


def _native(settings: RoleSettings, provider: str) -> Route:
    key = _native_key(settings, provider)
    url = settings.api_base
    if url and provider == "ollama" and not url.rstrip("/").endswith("/v1"):
        url = url.rstrip("/") + "/v1"  # Ollama's own clients name the server without it
    where = url or provider

    def make() -> LM15Client:
        config = RouterConfig(
            api_keys={provider: key} if key else None,
            base_urls={provider: url} if url else None,
            transport=LimitedTransport(where, settings.timeout_s, settings.reply_mb),
        )
        return LM15Client(config)

    return where, PooledAsync(make)


class LM15Client(AsyncLM15Engine):  # type: ignore[misc]
    """An engine of lm15 that closes the transport it was given."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.config.transport.aclose()


def _native_key(settings: RoleSettings, provider: str) -> str | None:
    """A key that belongs to the provider's own service is never sent to another address unless it was named."""
    if settings.api_key_env:
        return key_of(settings.model, settings.api_key_env)
    definition = lookup(provider)
    names = tuple(definition.access.env_keys) if definition else ()
    if settings.api_base or not names:
        return "none"
    if not any(os.environ.get(name) for name in names):
        raise ModelError(f"{settings.model!r} needs an API key: set the environment variable {' or '.join(names)}.")
    return None  # lm15 reads it from the same variables


def key_of(model: str, variable: str) -> str:
    """The API key that an environment variable holds. Raises ModelError if it holds none."""
    key = os.environ.get(variable)
    if not key:
        raise ModelError(f"{model!r} takes its API key from the environment variable {variable}, which is not set.")
    return key


def _litellm(settings: RoleSettings) -> Route:
    try:
        import litellm
    except ImportError as error:
        raise MissingExtraError("litellm", "litellm", f"The model {settings.model!r}") from error

    providers = sorted(str(getattr(provider, "value", provider)) for provider in litellm.provider_list)
    prefix = settings.model.partition("/")[0]
    if prefix not in providers:
        raise ModelError(_unknown(settings.model, [*NATIVE, *providers]))

    options: dict[str, Any] = {"timeout": settings.timeout_s}
    if settings.api_base:
        options["api_base"] = settings.api_base
        if not own_variables(settings.api_base):  # else LiteLLM sends the provider's key to whatever address this is
            options["api_key"] = "none"

    if settings.api_key_env:
        options["api_key"] = key_of(settings.model, settings.api_key_env)
    elif not settings.api_base:
        missing = litellm.validate_environment(settings.model)["missing_keys"]
        if missing:
            raise ModelError(
                f"{settings.model!r} needs an API key: set the environment variable {' and '.join(missing)}."
            )
    return settings.api_base or prefix, PooledAsync(lambda: AsyncLiteLLMEngine(**options))


def _unknown(model: str, providers: Any) -> str:
    prefix = model.partition("/")[0]
    return (
        f'{model!r} is neither "embedded" nor of the form PROVIDER/NAME with a known provider'
        f"{did_you_mean(prefix, providers)}; known are, among others: {', '.join(NATIVE)}."
    )


class PooledAsync:
    """One async client for each event loop: connections cannot cross loops, and `asyncio.run` makes a new one each
    time. Clients of closed loops are dropped when the next loop comes."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Response:
        return await self._client().complete(request)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        async for event in self._client().stream(request):
            yield event

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                self._clients = {known: client for known, client in self._clients.items() if not known.is_closed()}
                self._clients[loop] = self._make()
            return self._clients[loop]


logger = logging.getLogger(__name__)

REST_S = 10.0


class SeveralServers:
    """The client of a role with several addresses: the server with the fewest calls in flight is asked.

    One that gives no answer rests for ten seconds, and is then let through to by one call to see. Safe for threads.
    """

    def __init__(self, servers: Sequence[Route], clock: Callable[[], float] = time.monotonic) -> None:
        self.clients = dict(servers)
        self._clock = clock
        self._in_flight: Counter[str] = Counter()
        self._rests_until: dict[str, float] = {}
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Response:
        [response] = [part async for part in self._parts(request, streamed=False)]
        return response

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        async for event in self._parts(request, streamed=True):
            yield event

    async def aclose(self) -> None:
        await asyncio.gather(*(client.aclose() for client in self.clients.values()))

    async def _parts(self, request: Request, *, streamed: bool) -> AsyncIterator[Any]:
        """The response as the only part, or the events of a stream, from the first server that answers.

        Raises the error of the last one if none does, and at once what is an answer: a refusal, a full queue.
        """
        untried = list(self.clients)
        while untried:
            where = self._least_busy(untried)
            untried.remove(where)
            begun = False
            try:
                if streamed:
                    async with aclosing(self.clients[where].stream(request)) as events:
                        async for event in events:
                            begun = True
                            yield event
                else:
                    yield await self.clients[where].complete(request)

                self._rests_until.pop(where, None)
                return
            except LM15Error as error:
                if not unreachable(error):
                    self._rests_until.pop(where, None)
                    raise
                if where not in self._rests_until:
                    logger.warning("%s does not answer; kraq calls the others, and tries it now and then.", where)
                self._rests_until[where] = self._clock() + REST_S
                if begun or not untried:
                    raise
            finally:
                with self._lock:
                    self._in_flight[where] -= 1

    def _least_busy(self, untried: Sequence[str]) -> str:
        """Servers that rest come last; whoever is sent to one after its rest, prolongs it until the answer comes."""
        with self._lock:
            now = self._clock()
            where = min(untried, key=lambda where: (self._rests_until.get(where, now) > now, self._in_flight[where]))
            self._in_flight[where] += 1
            if where in self._rests_until:
                self._rests_until[where] = now + REST_S
            return where
