"""Writes the command that serves what `kraq.toml` asks of vLLM, the base model once with its roles' adapters, and asks
such a server how likely it finds a text: prompt log-probabilities, which `dspy.LM` has no call for."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.concurrency import SharedByCopies, run_all
from kraq_dspy._internal.dspy_internals import NetworkError
from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.bounded import JSONClient, ReplyLimits
from kraq_dspy.models.lms.local_models import SERVED, TRANSFORMERS, served_name, with_adapter
from kraq_dspy.models.lms.logprobs import by_segment
from kraq_dspy.models.lms.transport import key_of
from kraq_dspy.ports import PromptScorer
from kraq_dspy.settings import ROLES, RoleSettings, Settings

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
        # Without the layers' names vLLM 0.32 adapts the output layer too, and ends at the first prompt_logprobs.
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


_AT_ONCE = 16  # requests to tokenise


def make_prompt_scorer(settings: RoleSettings) -> PromptScorer:
    """The scorer of a role: vLLM ("hosted_vllm/NAME" or "openai/NAME" with `api_base`) or a model of this process. Of
    several servers the first one scores.

    Raises ModelError for a model that cannot score prompts, or whose key is not set.
    """
    settings = with_adapter(settings)
    if settings.model.startswith(TRANSFORMERS):
        return _InProcess(settings)
    prefix, _, name = settings.model.partition("/")
    if prefix not in ("hosted_vllm", "openai") or not settings.addresses or not name:
        raise ModelError(
            f"{settings.model!r} cannot score prompts, which the scorer 'wang2024' needs. Serve the verifier with vLLM "
            '("hosted_vllm/NAME" with api_base), load it here ("transformers/FOLDER"), or choose the scorer \'kraq\'.'
        )
    key = key_of(settings.model, settings.api_key_env) if settings.api_key_env else None
    limits = ReplyLimits(settings.addresses[0], settings.reply_s, settings.reply_mb)
    return VLLMPromptScorer(settings.addresses[0], name, key=key, timeout_s=settings.timeout_s, limits=limits)


class VLLMPromptScorer(SharedByCopies):
    """vLLM's `/tokenize` and `/v1/completions` with `prompt_logprobs`: all prompts in one request and forward pass.

    Such requests do not read vLLM's prefix cache. Safe for threads.
    """

    def __init__(
        self,
        api_base: str,
        model: str,
        *,
        key: str | None = None,
        timeout_s: float = 120.0,
        limits: ReplyLimits | None = None,
    ) -> None:
        self.api_base = api_base.rstrip("/")
        self.model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = JSONClient(limits or ReplyLimits(self.api_base, 600.0, 16), timeout_s)

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        """As `ports.PromptScorer`. Raises ModelError for a server that is no vLLM, refuses, or cannot be reached."""
        if not prompts:
            return []
        # Whether a text begins the prompt matters: that one gets the model's first special token.
        texts = list({(text, place == 0): None for prompt in prompts for place, text in enumerate(prompt)})
        ids = dict(zip(texts, run_all(self._tokens, texts, limit=_AT_ONCE), strict=True))
        rows = [[ids[text, place == 0] for place, text in enumerate(prompt)] for prompt in prompts]
        body = {
            "model": self.model,
            "prompt": [[token for segment in row for token in segment] for row in rows],
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 0,
        }
        answer = self._post(f"{self.api_base}/completions", body)
        choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
        return [
            _scores_of(row, choice.get("prompt_logprobs"), self.api_base)
            for row, choice in zip(rows, choices, strict=True)
        ]

    def close(self) -> None:
        self._client.close()

    def _tokens(self, text: tuple[str, bool]) -> list[int]:
        body = {"model": self.model, "prompt": text[0], "add_special_tokens": text[1]}
        reply = self._post(f"{self.api_base.removesuffix('/v1')}/tokenize", body)
        return [int(token) for token in reply["tokens"]]

    def _post(self, url: str, body: dict[str, Any]) -> Any:
        try:
            status, _, content = self._client.post(url, body, self._headers)
        except CollectionLimitError as error:
            raise ModelError(str(error)) from error
        except NetworkError as error:
            raise ModelError(
                f"The verifier's server {url} cannot be reached ({type(error).__name__}: {error}). Start it, or mend "
                "api_base."
            ) from error
        if status == 404 and url.endswith("/tokenize"):
            raise ModelError(f"{url} does not exist: the scorer 'wang2024' needs vLLM. Choose the scorer 'kraq'.")
        if status >= 400:
            raise ModelError(f"{url} answered {status}: {content[:500].decode('utf-8', 'replace')}")
        return json.loads(content)


class _InProcess(SharedByCopies):
    """A model of this process under the name that its role has."""

    def __init__(self, role: RoleSettings) -> None:
        from kraq_dspy.models.lms.engines.transformers_engine import engine_of

        self.model = role.model
        self.engine = engine_of(role)

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        return self.engine.prompt_logprobs(prompts, model=self.model)


def _scores_of(row: Sequence[Sequence[int]], scores: Any, where: str) -> list[tuple[float, ...]]:
    """vLLM gives one entry for each token, None for the first: {token id: {"logprob": ...}}, the prompt's own first."""
    ids = [token for segment in row for token in segment]
    if not isinstance(scores, list) or len(scores) != len(ids):
        raise ModelError(
            f"{where} gave no prompt log-probabilities, which the scorer 'wang2024' needs: serve the verifier with "
            "vLLM, or choose the scorer 'kraq'."
        )
    logprobs = [float(entry[str(token)]["logprob"]) for token, entry in zip(ids[1:], scores[1:], strict=True)]
    return by_segment(row, logprobs)
