"""Runs a GGUF file in this process: llama.cpp, from a wheel, as an engine under `dspy.LM`.

    [roles.default]
    model = "gguf/models/qwen2.5-coder-1.5b.gguf"

The wheel contains llama.cpp's own server. It runs in threads of this process, which talks to it
over the loopback interface with a key that only this process knows. It batches requests, caches the
beginnings of prompts, enforces JSON schemas, and drops a request if its caller goes away.
"""

import asyncio
import ctypes
import dataclasses
import logging
import os
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy.lm15 import Request, Response, RouterConfig, Timeouts

from kraq_dspy._internal.concurrency import SharedByCopies, called_once, free_cores
from kraq_dspy._internal.dspy_internals import AccessPolicy, AsyncLM15Engine, OpenAIChatCompat, ProviderDefinition
from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.lms.engines.gguf_file import GGUFHeader, lora_file, read_gguf
from kraq_dspy.models.lms.local_models import GGUF, adapter_folder, local_file
from kraq_dspy.models.lms.transport import PooledAsync
from kraq_dspy.settings import RoleSettings

logger = logging.getLogger(__name__)

SLOTS = 4
CONTEXT = 8192
_PROVIDER = "llama-cpp"
_DAY_S = 86_400.0  # a slow machine is no dead server: what is cancelled ends at once, the rest is waited for
_CHAT = ProviderDefinition.chat(
    # No connection is kept: the server ends it at some time, and a request at that moment finds the server gone.
    AccessPolicy(
        provider=_PROVIDER, auth_modes=("bearer",), base_url="http://127.0.0.1/v1", headers=(("Connection", "close"),)
    ),
    compat=OpenAIChatCompat(instruction_role="system", max_tokens_field="max_tokens", stream_usage="include"),
)


class LlamaCpp(SharedByCopies):
    """One GGUF file; it is loaded at the first request. A cancelled task ends its request.

    A request for "gguf/FILE#ADAPTER@HASH" is answered with that adapter; one that is asked for after the file was
    loaded makes it load again. `slots` requests are worked on together and each may read and write `context` tokens;
    more requests wait for their turn. `threads` None takes the cores that are free when it is loaded. Safe for threads
    and event loops.

    Raises ModelError for a file that is no chat model; MissingExtraError without xllamacpp.
    """

    supports_response_schema = True

    def __init__(
        self, file: Path, *, context: int | None = None, slots: int | None = None, threads: int | None = None
    ) -> None:
        self.xllamacpp = import_extra("xllamacpp", "local", "A GGUF model in this process")
        self.header = _chat_model(file)
        self.context = min(context or CONTEXT, self.header.number("context_length") or CONTEXT)
        self.slots = slots or SLOTS
        self.threads = threads
        self._started: Started | None = None
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Response:
        started, local = await asyncio.to_thread(self._at_server, request)
        return dataclasses.replace(await started.client.complete(local), model=request.model)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        started, local = await asyncio.to_thread(self._at_server, request)
        async for event in started.client.stream(local):
            yield event

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Give the memory back, once nothing is under way. The next request loads the model again."""
        with self._lock:
            self._started = None

    def _at_server(self, request: Request) -> tuple["Started", Request]:
        """The request as the server takes it: greedy without a temperature, as other models in this process are
        (llama.cpp would take .8), and with every adapter's share (without it all that are loaded are applied)."""
        adapter, config = request.model.partition("#")[2], request.config
        started = self.started(adapter)
        if config.temperature is None:
            config = dataclasses.replace(config, temperature=0.0)
        if started.adapters:
            scales = [{"id": number, "scale": float(name == adapter)} for number, name in enumerate(started.adapters)]
            config = dataclasses.replace(config, extensions={**(config.extensions or {}), "lora": scales})
        return started, dataclasses.replace(request, model=f"{_PROVIDER}/local", config=config)

    def started(self, adapter: str = "") -> "Started":
        """A server that has the adapter, loaded if there is none. It runs as long as somebody holds it."""
        with self._lock:
            loaded = self._started.adapters if self._started else ()
            if self._started is None or (adapter and adapter not in loaded):
                self._started = None  # the former one goes first, unless it is at work: two do not fit everywhere
                self._started = self._load((*loaded, adapter) if adapter else loaded)
            return self._started

    def _load(self, adapters: tuple[str, ...]) -> "Started":
        files = [lora_file(adapter_folder(name)[0], self.header) for name in adapters]
        threads, key = self.threads or free_cores(), secrets.token_urlsafe()
        parameters = self.xllamacpp.CommonParams()
        parameters.model.path = str(self.header.path)
        parameters.model_alias = ["local"]
        parameters.lora_adapters = [self.xllamacpp.CommonAdapterLoraInfo(str(file), 1.0) for file in files]
        parameters.verbosity = -1
        parameters.port = 0  # any that is free
        parameters.api_keys = [key]
        parameters.ui = False
        parameters.endpoint_metrics = True
        parameters.n_threads_http = 64  # a request under way holds one, also while it waits for a slot
        parameters.n_parallel = self.slots
        parameters.n_ctx = self.context * self.slots
        parameters.n_batch = 512
        parameters.cache_ram_mib = 512
        parameters.use_jinja = True
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        logger.info(
            "loading %s: %d slots of %d tokens, %d threads", self.header.path, self.slots, self.context, threads
        )
        try:
            with _our_signals():
                server = self.xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp cannot load {str(self.header.path)!r} (architecture {self.header.architecture!r}"
                + (f", adapters {', '.join(adapters)}" if adapters else "")
                + "). Perhaps the file is damaged, or newer than the installed xllamacpp: compare its checksum, and "
                "try pip install -U xllamacpp."
            ) from error

        server.handle_metrics()  # waits for its loop: a server that is closed before that never ends
        config = RouterConfig(
            providers=(_CHAT,),
            api_keys={_PROVIDER: key},
            base_urls={_PROVIDER: f"{server.listening_address}/v1"},
            timeouts=Timeouts(read=_DAY_S, write=_DAY_S, pool=_DAY_S),
        )
        return Started(server, PooledAsync(lambda: AsyncLM15Engine(config)), adapters)


@dataclass(frozen=True, slots=True)
class Started:
    """One start of the server, which ends with the last reference, and the client that speaks to it."""

    server: Any
    client: PooledAsync
    adapters: tuple[str, ...]


def llama_engine(settings: RoleSettings) -> LlamaCpp:
    """Load the model of a role; roles with the same file and settings share one copy in memory."""
    file = local_file(settings.model.removeprefix(GGUF).partition("#")[0])
    return shared_model(file, settings.context, settings.slots, settings.threads)


@called_once
def shared_model(file: Path, context: int | None, slots: int | None, threads: int | None) -> LlamaCpp:
    return LlamaCpp(file, context=context, slots=slots, threads=threads)


def _chat_model(file: Path) -> GGUFHeader:
    header = read_gguf(file)
    if header.values.get("general.type") == "adapter":
        raise ModelError(
            f"{str(file)!r} is a LoRA adapter: name it as adapter, next to the model that it was made for."
        )
    if "tokenizer.ggml.tokens" not in header.arrays:
        raise ModelError(f"{str(file)!r} holds no language model (architecture {header.architecture!r}).")
    if not header.values.get("tokenizer.chat_template"):
        raise ModelError(
            f"{str(file)!r} has no chat template: it is a base model, which continues text and does not answer. Take "
            "the file of the tuned model (its name usually ends in -Instruct or -Chat), or "
            f'"transformers/{file}", which writes the messages one after the other.'
        )
    return header


@contextmanager
def _our_signals() -> Iterator[None]:
    """llama.cpp's server takes Ctrl-C and SIGTERM for itself, with a handler that ends the process at the second one.

    `signal.signal` could not put Python's back from a thread, so the system's own records are kept.
    """
    if os.name != "posix":
        yield
        return

    library = ctypes.CDLL(None)
    former_handlers = {number: ctypes.create_string_buffer(512) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, record in former_handlers.items():
        library.sigaction(int(number), None, record)
    try:
        yield
    finally:
        for number, record in former_handlers.items():
            library.sigaction(int(number), record, None)
