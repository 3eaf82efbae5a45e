"""Decides what may be used of that which a file names: an index, a kraq.toml found in a folder, a table of `kraq eval`.

Addresses and keys, models that would be loaded from the hub or a file, and functions that would be run.

What users say themselves (on the command line, in a file after `--config`, as `settings` in Python)
is used as it is. What a file names is used once they agreed to it: by making the index themselves,
or by `--trust`. kraq keeps that in their own configuration folder, for this file and these
addresses and keys alone, and asks again about new ones.

    >>> from kraq_dspy.settings import RoleSettings, Settings
    >>> [place] = destinations(Settings(roles={"default": RoleSettings(model="openai/m", api_base="http://there/v1")}))
    >>> place.address, place.key
    ('http://there/v1', '')
"""

import dataclasses
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from platformdirs import user_config_path

from kraq_dspy._internal.files import append_line
from kraq_dspy.errors import ModelError, UntrustedError
from kraq_dspy.settings import BROUGHT_MODELS, EMBEDDED, KNOWN_ENCODERS, EncoderSettings, RoleSettings, Settings

logger = logging.getLogger(__name__)

CONSENTS = "trusted.jsonl"

PROVIDERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "openai": (("api.openai.com",), ("OPENAI_API_KEY",)),
    "azure": (("openai.azure.com", "cognitiveservices.azure.com"), ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")),
    "anthropic": (("api.anthropic.com",), ("ANTHROPIC_API_KEY",)),
    "gemini": (("generativelanguage.googleapis.com",), ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": (("api.groq.com",), ("GROQ_API_KEY",)),
    "openrouter": (("openrouter.ai",), ("OPENROUTER_API_KEY",)),
    "deepseek": (("api.deepseek.com",), ("DEEPSEEK_API_KEY",)),
    "mistral": (("api.mistral.ai",), ("MISTRAL_API_KEY",)),
    "xai": (("api.x.ai",), ("XAI_API_KEY",)),
    "cohere": (("api.cohere.com", "api.cohere.ai"), ("COHERE_API_KEY", "CO_API_KEY")),
    "together_ai": (("api.together.xyz", "api.together.ai"), ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY")),
    "fireworks_ai": (("api.fireworks.ai",), ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    "voyage": (("api.voyageai.com",), ("VOYAGE_API_KEY",)),
    "jina_ai": (("api.jina.ai",), ("JINA_API_KEY", "JINA_AI_API_KEY")),
    "huggingface": (("huggingface.co", "huggingface.cloud"), ("HF_TOKEN", "HUGGINGFACE_API_KEY")),
    "nvidia_nim": (("integrate.api.nvidia.com",), ("NVIDIA_API_KEY", "NVIDIA_NIM_API_KEY")),
    "qdrant": (("cloud.qdrant.io",), ("QDRANT_API_KEY",)),
}
"""The hosts of a provider, and the variables that hold a key of it: no other host is sent one of these unasked."""

OWN_SERVERS = {
    "hosted_vllm": ("HOSTED_VLLM_API_KEY", "VLLM_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "ollama_chat": ("OLLAMA_API_KEY",),
    "qdrant": ("QDRANT_API_KEY",),
}
"""The same for servers that anybody runs, at whatever address."""

_BY_ACCOUNT = ("bedrock", "sagemaker", "vertex_ai", "azure", "azure_ai", "watsonx", "databricks", "snowflake")
"""Providers whose clients sign requests with an account of this machine: only to their own hosts."""

_IN_PROCESS = ("gguf/", "transformers/")

_KNOWN = frozenset(
    [*KNOWN_ENCODERS, *(f"gguf/{name}{adapter}" for name in BROUGHT_MODELS for adapter in ("", "#kraq-questions"))]
)
"""What is loaded unasked, whoever names it."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the settings send text, or from where they load it: a section, an address and the variable with the key.

    `address` is the name of the provider where the settings give none. `key` is empty if they name no variable.
    """

    place: str
    address: str
    key: str
    provider: str

    def __str__(self) -> str:
        return f"[{self.place}] {self.address}" + (f" with the key in {self.key}" if self.key else "")


@dataclass(frozen=True, slots=True)
class Named:
    """A file that names destinations. Consents are kept under its `id`; messages call it `path`."""

    id: str
    path: str
    is_index: bool = True
    is_table: bool = False


def index_at(path: Path, created_at: str) -> Named:
    """An index is known by the moment at which it was made, so that it may be moved and copied."""
    return Named(f"index {created_at}", str(path))


def settings_file(path: Path) -> Named:
    """A settings file is known by its place."""
    return Named(f"file {path.resolve()}", str(path), is_index=False)


def table_file(path: Path) -> Named:
    """A table of `kraq eval` is known by its place, and its code by what that says now."""
    return Named(f"table {path.resolve()}", str(path), is_index=False, is_table=True)


def code(place: str, function: str) -> Destination:
    """A function that a file names, "FILE.py:NAME" or "package.module:NAME", and the hash of the file."""
    file = Path(function.rpartition(":")[0])
    content = file.read_bytes() if file.is_file() else b""
    return Destination(place, f"code of {function} ({hashlib.sha256(content).hexdigest()[:12]})", "", "")


def destinations(settings: Settings) -> tuple[Destination, ...]:
    """All that the settings name, in the order of their sections; nothing for models and stores of
    this machine."""
    named: list[Destination] = []
    for name, role in settings.roles.items():
        named += _of_role(f"roles.{name}", role)

    encoder, store, ray = settings.encoder, settings.store, settings.run.ray_address
    if encoder.api_base is not None:
        address = bare_address(encoder.api_base)
        named.append(Destination("encoder", address, encoder.api_key_env or "", ""))
    if store.url is not None:
        key = store.api_key_env or "QDRANT_API_KEY"
        named.append(Destination("store", bare_address(store.url), key, "qdrant"))
    if ray not in (None, "auto", "local"):
        named.append(Destination("run", str(ray), "", ""))

    model_names = {
        "encoder": encoder.name,
        "instructed": settings.instructed.name,
        "k2rag": settings.k2rag.summariser,
    }
    for section, name in model_names.items():
        if _is_address(name):
            named.append(Destination(section, bare_address(name), "", ""))
    return tuple(named)


def loaded(settings: Settings) -> tuple[Destination, ...]:
    """The models that the settings have loaded into this process, from the hub or a file, but for those that the
    library knows by name."""
    places: list[Destination] = []
    for name, role in settings.roles.items():
        if _is_in_process(role.model):
            adapter = f"#{role.adapter}" if role.adapter else ""
            places.append(Destination(f"roles.{name}", role.model + adapter, "", ""))

    if settings.encoder.api_base is None:
        places.append(Destination("encoder", settings.encoder.name, "", ""))
    places.append(Destination("instructed", settings.instructed.name, "", ""))
    if settings.k2rag.summariser:
        places.append(Destination("k2rag", settings.k2rag.summariser, "", ""))
    return tuple(place for place in places if place.address not in _KNOWN and not _is_address(place.address))


def asked_about(settings: Settings) -> tuple[Destination, ...]:
    """All that a stranger's settings may not do unasked."""
    return (*destinations(settings), *loaded(settings))


def _is_in_process(model: str) -> bool:
    is_file = model.endswith(".gguf") and ("/" not in model or model[0] in "./~")
    return is_file or model.startswith(_IN_PROCESS)


def _of_role(place: str, role: RoleSettings) -> list[Destination]:
    prefix, _, name = role.model.partition("/")
    if any(_is_address(each) for each in (role.model, name, role.adapter or "")):
        return [Destination(place, bare_address(role.model), role.api_key_env or "", prefix)]
    if role.model == EMBEDDED or _is_in_process(role.model):
        return []
    addresses = [bare_address(address) for address in role.addresses] or [prefix]
    return [Destination(place, address, role.api_key_env or "", prefix) for address in addresses]


def _is_address(name: str) -> bool:
    return "://" in name or name.startswith(("\\\\", "//"))


def bare_address(address: str) -> str:
    """Write the address without user name, password and keys, as a manifest keeps it.

    >>> bare_address("http://ada:secret@there/v1?api_key=secret"), bare_address("ada:secret@there:8000/v1")
    ('http://there/v1', 'there:8000/v1')
    """
    parts = urlsplit(address.strip().rstrip("/"))
    if not parts.netloc:
        host, slash, path = address.partition("/")
        return host.rpartition("@")[2] + slash + path
    query = "&".join(each for each in parts.query.split("&") if not _names_a_key(each))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query))


def has_secret(address: str) -> bool:
    """Whether a user name, a password or a key stands in an address, where logs and errors would tell it."""
    host = address.partition("://")[2] or address
    query = host.partition("?")[2]
    return "@" in re.split("[/?#]", host)[0] or any(map(_names_a_key, query.split("&")))


def require_no_secret(address: str, setting: str) -> None:
    """Raises ModelError, which does not show the address, where `has_secret`."""
    if has_secret(address):
        raise ModelError(
            f"{setting} holds a user name, a password or a key. Leave it out, and name the environment variable that "
            "holds the key: api_key_env."
        )


def _names_a_key(parameter: str) -> bool:
    name = parameter.partition("=")[0].casefold().replace("_", "").replace("-", "")
    return name.endswith(("key", "token", "password", "secret", "signature")) or name in ("sig", "pass", "auth")


def own_variables(address: str, provider: str = "") -> tuple[str, ...]:
    """The variables that hold a key of the provider who answers at the address.

    >>> own_variables("https://api.openai.com/v1"), own_variables("http://elsewhere/v1", "openai")
    (('OPENAI_API_KEY',), ())
    """
    parts = urlsplit(address)
    if not parts.netloc:  # the provider's own address
        return PROVIDERS.get(address, ((), ()))[1] or OWN_SERVERS.get(address, ())

    host = parts.hostname or ""
    for hosts, variables in PROVIDERS.values():
        if parts.scheme == "https" and any(host == known or host.endswith(f".{known}") for known in hosts):
            return variables
    return OWN_SERVERS.get(provider, ())


def own_key(address: str, named: str | None, provider: str = "") -> str | None:
    """The key for an address: from the variable that the settings name, else from one of the provider's own."""
    variables = (named,) if named else own_variables(address, provider)
    return next((key for variable in variables if (key := os.environ.get(variable))), None)


def _is_foreign(place: Destination) -> bool:
    """Whether it would be sent a key, or signed with an account, of somebody else's."""
    variables = own_variables(place.address, place.provider)
    if place.key:
        return place.key not in variables
    return place.provider in _BY_ACCOUNT and place.address != place.provider and not variables


def open_questions(source: Named, settings: Settings) -> tuple[Destination, ...]:
    """Return those of the destinations that nobody on this account agreed to."""
    return _not_agreed(source, asked_about(settings))


def _not_agreed(source: Named, places: Iterable[Destination]) -> tuple[Destination, ...]:
    agreed = _agreed(source)
    return tuple(place for place in places if (place.address, place.key) not in agreed)


def require_consent(source: Named, settings: Settings, *, trust: bool = False) -> None:
    """Raises UntrustedError unless somebody agreed to all that the settings of `source` name; `trust` agrees now."""
    require_agreed(source, asked_about(settings), trust=trust)


def require_agreed(source: Named, places: Iterable[Destination], *, trust: bool = False) -> None:
    """Do as `require_consent` does, for all of these.

    Another provider's key needs the user's own settings.
    """
    not_agreed = _not_agreed(source, places)
    if foreign := [place for place in not_agreed if _is_foreign(place)]:
        raise UntrustedError(
            f"{source.path!r} names a key for another provider's address: {_listed(foreign)}. Nothing was sent; "
            "--trust cannot allow it. If intended, pass your own settings: --config FILE"
            + (_OWN_MODEL if source.is_index else ".")
        )
    if not not_agreed:
        return
    if not trust:
        raise UntrustedError(
            f"{source.path!r} names {_listed(not_agreed)}, and you have not agreed to that. {_way_out(source)}"
        )
    remember(source, not_agreed)


_OWN_MODEL = ". Or bring a model of your own: --lm MODEL --api-base URL, or --lm embedded."


def _way_out(source: Named) -> str:
    if source.is_table:
        return "Nothing was sent, loaded or run. If you know who wrote it and have read it, agree once: --trust."
    if not source.is_index:
        return (
            f"Nothing was sent or loaded. If it is your file, name it: --config {source.path}; or agree once: --trust."
        )
    return (
        "Nothing was sent or loaded. If you know who made this index, agree once with --trust (trust=True in Python), "
        "which is remembered. Else bring a model of your own, --lm MODEL --api-base URL or --lm embedded, or settings "
        "of your own, --config FILE."
    )


def _listed(places: Iterable[Destination]) -> str:
    return "; ".join(dict.fromkeys(map(str, places)))


def remember(source: Named, agreed: Iterable[Destination]) -> None:
    """Keep the consent for later commands. Where the folder cannot be written, it holds for this one alone."""
    known = _agreed(source)
    for place in agreed:
        pair = (place.address, place.key)
        if pair in known:
            continue

        known.add(pair)
        line = {"for": source.id, "path": str(Path(source.path).absolute()), "address": pair[0], "key": pair[1]}
        try:
            append_line(_consents(), json.dumps(line, ensure_ascii=True))
        except (OSError, RuntimeError) as error:
            logger.warning("kraq cannot store that you agreed to %s: %s", place, error)
            return


def without_models(settings: Settings) -> Settings:
    """The settings with the embedded model in every role: for those who bring models of their own."""
    role = settings.role("default")
    bare = dataclasses.replace(role, model=EMBEDDED, api_base=None, api_key_env=None, adapter=None)
    return dataclasses.replace(settings, roles={"default": bare})


def without_encoder(settings: Settings) -> Settings:
    """The settings with the packaged encoder: for those who bring one of their own."""
    return dataclasses.replace(settings, encoder=EncoderSettings())


def _consents() -> Path:
    """Lines of JSON in the user's folder for settings."""
    return user_config_path("kraq-dspy", appauthor=False, roaming=True) / CONSENTS


def _agreed(source: Named) -> set[tuple[str, str]]:
    """The pairs of address and variable that were agreed to; a line that cannot be read agrees to nothing."""
    try:
        lines = _consents().read_text("utf-8", errors="replace").splitlines()
    except (OSError, RuntimeError):
        return set()

    agreed: set[tuple[str, str]] = set()
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["for"] == source.id:
                agreed.add((str(entry["address"]), str(entry["key"])))
        except (ValueError, KeyError, TypeError):
            continue
    return agreed
