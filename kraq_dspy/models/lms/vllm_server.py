"""Writes the command with which vLLM serves a model and its LoRA adapters, under the names that kraq asks for."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.local_models import adapter_folder, served_name

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes for --max-lora-rank."""


@dataclass(frozen=True)
class VLLMServer:
    """One vLLM: a base model, and folders of adapters.

    >>> print(VLLMServer("Qwen/Qwen2.5-1.5B-Instruct", port=8001).shown())
    vllm serve Qwen/Qwen2.5-1.5B-Instruct --host localhost --port 8001
    """

    model: str
    adapters: tuple[str, ...] = ()
    host: str = "localhost"
    port: int = 8000

    @property
    def api_base(self) -> str:
        return f"http://{self.host}:{self.port}/v1"

    def command(self, program: str = "vllm", more: Sequence[str] = ()) -> list[str]:
        """The words of the command; `more` are options of vLLM's own. Raises ModelError for a folder that is no
        adapter."""
        words = [program, "serve", self.model, "--host", self.host, "--port", str(self.port)]
        return [*words, *self._adapter_options(), *more]

    def shown(self, program: str = "vllm", more: Sequence[str] = ()) -> str:
        """The command for a shell."""
        return shlex.join(self.command(program, more))

    def role(self, name: str = "generator") -> str:
        """Lines for kraq.toml that make a role ask this server."""
        lines = [f"[roles.{name}]", f'model = "hosted_vllm/{self.model}"', f'api_base = "{self.api_base}"']
        if self.adapters:
            lines.append(f"adapter = {json.dumps(self.adapters[0])}")
        return "\n".join(lines)

    def _adapter_options(self) -> list[str]:
        if not self.adapters:
            return []

        folders = [adapter_folder(adapter)[0] for adapter in self.adapters]
        configs = [_config(folder) for folder in folders]
        modules = [f"{served_name(folder)}={folder}" for folder in folders]
        words = ["--enable-lora", "--max-lora-rank", str(_rank(configs)), "--max-loras", str(len(folders))]
        words += ["--lora-modules", *modules]

        # Without the layers' names vLLM 0.32 adapts the output layer too, and ends at the first prompt_logprobs.
        layers = sorted({layer for config in configs for layer in _layers(config)})
        return [*words, "--lora-target-modules", *layers] if layers else words


def _config(folder: str) -> Mapping[str, Any]:
    try:
        config: dict[str, Any] = json.loads((Path(folder) / "adapter_config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder!r} is no adapter: {error}. Give a folder that `kraq finetune` wrote.") from error
    return config


def _rank(configs: Sequence[Mapping[str, Any]]) -> int:
    """The smallest of vLLM's ranks that holds all of the adapters."""
    highest = max(int(config["r"]) for config in configs)
    for rank in RANKS:
        if rank >= highest:
            return rank
    raise ModelError(f"An adapter has rank {highest}; vLLM takes {RANKS[-1]} at most.")


def _layers(config: Mapping[str, Any]) -> list[str]:
    """The names of the layers; a pattern (a string) is left to vLLM."""
    layers = config.get("target_modules")
    return [str(layer) for layer in layers] if isinstance(layers, list) else []
