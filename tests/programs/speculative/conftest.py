"""Makes a language model that replies with the words and the log-probabilities that the test wrote."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, TokenLogprob, Usage

from kraq_dspy.extend import blocking
from kraq_dspy.models.lms.logprobs import mean_logprob
from kraq_dspy.programs import Scorer
from kraq_dspy.programs.speculative.drafts import Draft, FailedDraft
from kraq_dspy.programs.speculative.scoring import Score

Tokens = Sequence[tuple[str, float]]
Script = Callable[[str], Tokens]


class ScriptedEngine:
    """`script` turns the last user message into tokens, each with its log-probability; exceptions are raised."""

    supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens", "logprobs"})

    def __init__(self, script: Script, *, logprobs: bool = True, delay_s: float = 0.0) -> None:
        self.script, self.logprobs, self.delay_s = script, logprobs, delay_s
        self.prompts: list[str] = []
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> "ScriptedEngine":
        return self

    def start(self, request: Request) -> str:
        prompt = request.messages[-1].text or ""
        with self.lock:
            self.prompts.append(prompt)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return prompt

    def finish(self, request: Request, prompt: str) -> Response:
        tokens = self.script(prompt)
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart("".join(text for text, _ in tokens))]),
            finish_reason="stop",
            usage=Usage(input_tokens=1, output_tokens=len(tokens)),
            logprobs=tuple(TokenLogprob(text, score) for text, score in tokens) if self.logprobs else None,
        )

    def complete(self, request: Request) -> Response:
        prompt = self.start(request)
        try:
            time.sleep(self.delay_s)
            return self.finish(request, prompt)
        finally:
            with self.lock:
                self.in_flight -= 1


class AsyncScriptedEngine:
    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = engine

    def __deepcopy__(self, memo: dict[int, Any]) -> "AsyncScriptedEngine":
        return self

    async def complete(self, request: Request) -> Response:
        prompt = self.engine.start(request)
        try:
            await asyncio.sleep(self.engine.delay_s)
            return self.engine.finish(request, prompt)
        finally:
            with self.engine.lock:
                self.engine.in_flight -= 1


def make_lm(script: Script, *, logprobs: bool = True, delay_s: float = 0.0) -> tuple[dspy.LM, ScriptedEngine]:
    engine = ScriptedEngine(script, logprobs=logprobs, delay_s=delay_s)
    lm = dspy.LM("scripted", engine=engine, async_engine=AsyncScriptedEngine(engine), cache=False, num_retries=0)
    return lm, engine


ScriptedLM = Callable[..., tuple[dspy.LM, ScriptedEngine]]


@pytest.fixture(scope="session")
def scripted_lm() -> ScriptedLM:
    """`scripted_lm(script)` gives the model and its engine, which counts what it was asked."""
    return make_lm


class DrafterScore(Scorer):
    """The drafter's confidence in its response: no verifier is asked."""

    name = "drafter"
    needs_logprobs = True

    async def aforward(self, question: str, drafts: Sequence[Draft]) -> list[Score | FailedDraft]:
        return [Score(mean_logprob(draft.response_logprobs), {}) for draft in drafts]

    forward = blocking(aforward)
