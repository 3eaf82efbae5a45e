"""Asks a vLLM server, or a model of this process, how likely it finds a text: prompt log-probabilities, which `dspy.LM`
has no call for."""

import json
from collections.abc import Sequence
from typing import Any

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.concurrency import SharedByCopies, run_all
from kraq_dspy._internal.dspy_internals import NetworkError
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.bounded import JSONClient, ReplyLimits
from kraq_dspy.models.lms.local_models import TRANSFORMERS, with_adapter
from kraq_dspy.models.lms.logprobs import by_segment
from kraq_dspy.models.lms.transport import key_of
from kraq_dspy.ports import PromptScorer
from kraq_dspy.settings import RoleSettings

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
