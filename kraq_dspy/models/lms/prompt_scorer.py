"""Asks a model how likely it finds a text: log-probabilities of a prompt, which `dspy.LM` has no call for."""

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from dspy.lm15 import CollectionLimitError

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.dspy_internals import NetworkError
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.from_threads import in_loop
from kraq_dspy.models.lms.limited_transport import LimitedTransport
from kraq_dspy.models.lms.local_models import TRANSFORMERS, with_adapter
from kraq_dspy.models.lms.transport import key_of
from kraq_dspy.ports import PromptScorer
from kraq_dspy.settings import RoleSettings

ELSE = "or choose another scorer: -P scorer=kraq"


def make_prompt_scorer(settings: RoleSettings) -> PromptScorer:
    """The scorer of a role: vLLM ("hosted_vllm/NAME" or "openai/NAME" with `api_base`) or a model of this process.

    Of several servers the first one scores. Raises ModelError for a model that cannot score prompts, or whose key is
    not set.
    """
    settings = with_adapter(settings)
    if settings.model.startswith(TRANSFORMERS):
        return TransformersPromptScorer(settings)

    provider, _, name = settings.model.partition("/")
    if provider not in ("hosted_vllm", "openai") or not settings.addresses or not name:
        raise ModelError(
            f"{settings.model!r} cannot score prompts, which the scorer 'wang2024' needs. Serve the verifier with vLLM "
            f'("hosted_vllm/NAME" with api_base), load it here ("transformers/FOLDER"), {ELSE}.'
        )
    key = key_of(settings.model, settings.api_key_env) if settings.api_key_env else None
    return VLLMPromptScorer(
        settings.addresses[0], name, key=key, timeout_s=settings.timeout_s, reply_mb=settings.reply_mb
    )


class VLLMPromptScorer(SharedByCopies):
    """vLLM's `/tokenize`, and `/v1/completions` with `prompt_logprobs`: all prompts in one request.

    Safe for threads.
    """

    def __init__(
        self,
        api_base: str,
        model: str,
        *,
        key: str | None = None,
        timeout_s: float = RoleSettings.timeout_s,
        reply_mb: int = RoleSettings.reply_mb,
    ) -> None:
        self.api_base = api_base.rstrip("/")
        self.model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._transport = LimitedTransport(self.api_base, timeout_s, reply_mb)

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        """Do as `ports.PromptScorer` says. Raises ModelError for a server that is no vLLM, refuses,
        or cannot be reached."""
        if not prompts:
            return []

        known: dict[tuple[str, bool], list[int]] = {}
        rows = []
        for prompt in prompts:
            row = []
            for place, text in enumerate(prompt):
                begins = place == 0  # the beginning of a prompt gets the model's first special token
                if (text, begins) not in known:
                    known[text, begins] = self._tokens(text, begins)
                row.append(known[text, begins])
            rows.append(row)

        body = {
            "model": self.model,
            "prompt": [[token for segment in row for token in segment] for row in rows],
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 0,
        }
        reply = self._post(f"{self.api_base}/completions", body)
        choices = sorted(reply["choices"], key=lambda choice: int(choice["index"]))
        return [self._scores(row, choice) for row, choice in zip(rows, choices, strict=True)]

    def _tokens(self, text: str, begins: bool) -> list[int]:
        body = {"model": self.model, "prompt": text, "add_special_tokens": begins}
        reply = self._post(f"{self.api_base.removesuffix('/v1')}/tokenize", body)
        return [int(token) for token in reply["tokens"]]

    def _scores(self, row: Sequence[Sequence[int]], choice: Any) -> list[tuple[float, ...]]:
        """vLLM gives one entry for each token, None for the first: {token id: {"logprob": ...}}."""
        tokens = [token for segment in row for token in segment]
        scores = choice.get("prompt_logprobs")
        if not isinstance(scores, list) or len(scores) != len(tokens):
            raise ModelError(
                f"{self.api_base} gave no log-probabilities of the prompt, which the scorer 'wang2024' needs: serve "
                f"the verifier with vLLM, {ELSE}."
            )
        pairs = zip(tokens[1:], scores[1:], strict=True)
        return by_segment(row, [float(entry[str(token)]["logprob"]) for token, entry in pairs])

    def _post(self, url: str, body: dict[str, Any]) -> Any:
        try:
            reply, content = in_loop(self._transport.post(url, self._headers, body))
        except NetworkError as error:
            raise ModelError(
                f"The verifier's server {url} cannot be reached ({error}). Start it, or correct api_base."
            ) from error
        except CollectionLimitError as error:
            raise ModelError(str(error)) from error

        if reply.status == 404 and url.endswith("/tokenize"):
            raise ModelError(f"{url} does not exist: the scorer 'wang2024' needs vLLM; {ELSE}.")
        if not 200 <= reply.status < 300:
            raise ModelError(f"{url} answered {reply.status}: {content[:500].decode('utf-8', 'replace')}")
        return json.loads(content)


class TransformersPromptScorer(SharedByCopies):
    """A model of this process under the name that its role has."""

    def __init__(self, role: RoleSettings) -> None:
        from kraq_dspy.models.lms.engines.transformers_engine import engine_of  # takes seconds

        self.model = role.model
        self.engine = engine_of(role)

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        scored = []
        for prompt in prompts:
            segments = [
                self.engine.tokenizer(text, add_special_tokens=place == 0)["input_ids"]
                for place, text in enumerate(prompt)
            ]
            tokens = [token for segment in segments for token in segment]
            scored.append(by_segment(segments, self.engine.logprobs_of(tokens, self.model)))
        return scored


def by_segment(prompt: Sequence[Sequence[int]], scores: Sequence[float]) -> list[tuple[float, ...]]:
    """The log-probabilities of each segment's tokens; `scores` are those of the whole prompt, whose first token has
    none.

    >>> by_segment([[1, 2], [3], [], [4, 5]], [-2.0, -3.0, -4.0, -5.0])
    [(-2.0,), (-3.0,), (), (-4.0, -5.0)]
    """
    ends = accumulate(map(len, prompt))
    return [
        tuple(scores[max(0, end - len(segment) - 1) : max(0, end - 1)])
        for segment, end in zip(prompt, ends, strict=True)
    ]
