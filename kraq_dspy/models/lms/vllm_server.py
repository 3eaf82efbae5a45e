"""Writes the command that serves what `kraq.toml` asks of vLLM: the base model once, with its roles' adapters."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.local_models import SERVED, served_name
from kraq_dspy.settings import ROLES, Settings

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes for --max-lora-rank."""


@dataclass(frozen=True, slots=True)
class Server:
    """One vLLM: a base model at an address, and the folder of each adapter by the name it is served under.

    `key_env` is the environment variable with the key that clients send, or None.
    """

    base: str
    api_base: str
    adapters: Mapping[str, str]
    roles: tuple[str, ...]
    key_env: str | None

    def command(self, program: str = "vllm", *, more: Sequence[str] = ()) -> list[str]:
        """`more` are options of vLLM's own. Raises ModelError for a folder that is no adapter."""
        place = urlsplit(self.api_base)
        words = [program, "serve", self.base, "--host", place.hostname or "localhost"]
        words += ["--port", str(place.port or (443 if place.scheme == "https" else 80))]
        if not self.adapters:
            return [*words, *more]
        configs = [_config(folder) for folder in self.adapters.values()]
        rank = max([RANKS[0], *(int(config["r"]) for config in configs)])
        if rank > RANKS[-1]:
            raise ModelError(f"An adapter has rank {rank}; vLLM takes {RANKS[-1]} at most.")
        words += ["--enable-lora", "--max-lora-rank", str(next(each for each in RANKS if each >= rank))]
        words += ["--max-loras", str(len(self.adapters))]
        words += ["--lora-modules", *(f"{name}={folder}" for name, folder in self.adapters.items())]
        # Without the layers' names vLLM 0.32 adapts the output layer too.
        layers = sorted({layer for config in configs for layer in _layers(config)})
        return [*words, *(["--lora-target-modules", *layers] if layers else []), *more]

    def environment(self) -> dict[str, str]:
        """What the command needs beside the shell's own: the key. Raises ModelError."""
        variables = {}
        if self.key_env:
            key = os.environ.get(self.key_env)
            if not key:
                raise ModelError(f"The server's key is in the environment variable {self.key_env}, which is not set.")
            variables["VLLM_API_KEY"] = key
        return variables

    def shown(self, *, more: Sequence[str] = ()) -> str:
        """The command for a shell, with the name of the key's variable in the key's place."""
        words = [f'VLLM_API_KEY="${self.key_env}"'] if self.key_env else []
        return " ".join([*words, shlex.join(self.command(more=more))])


def servers_of(settings: Settings) -> list[Server]:
    """What the roles with "hosted_vllm/..." need, one for each address. Raises ConfigError, ModelError."""
    models: dict[str, tuple[str, dict[str, str], list[str], str | None]] = {}
    for name in ROLES:
        role = settings.roles.get(name)
        if role is None or not role.model.startswith(SERVED):
            continue
        if not role.addresses:
            raise ConfigError(f"[roles.{name}] has no api_base: say where it is served, as http://localhost:8000/v1")
        base = role.model.removeprefix(SERVED)
        for address in role.addresses:
            known = models.setdefault(address, (base, {}, [], role.api_key_env))
            if known[0] != base:
                raise ConfigError(
                    f"[roles.{name}] wants {base!r} at {address}, where [roles.{known[2][0]}] has {known[0]!r}: one "
                    "vLLM serves one base model. Give another api_base; or, if it is an adapter of that model, name "
                    "the base as `model` and its folder as `adapter`."
                )
            known[2].append(name)
            if role.adapter:
                known[1][served_name(role.adapter)] = role.adapter
    if not models:
        raise ConfigError(
            'No role is served by vLLM. Say in kraq.toml: [roles.generator] model = "hosted_vllm/FOLDER", '
            'adapter = "FOLDER", api_base = "http://localhost:8000/v1".'
        )
    return [
        Server(base, api_base, adapters, tuple(roles), key) for api_base, (base, adapters, roles, key) in models.items()
    ]


def _config(folder: str) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((Path(folder) / "adapter_config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder!r} is no adapter: {error}. Give a folder that `kraq finetune` wrote.") from error
    return config


def _layers(config: Mapping[str, object]) -> list[str]:
    """The names of the layers; a pattern (a string) is left to vLLM."""
    layers = config.get("target_modules")
    return [str(layer) for layer in layers] if isinstance(layers, list) else []
