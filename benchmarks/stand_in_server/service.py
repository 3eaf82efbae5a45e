"""Answers the two model endpoints, with the delays and faults that the knobs ask for."""

import asyncio
import base64
import hashlib
import importlib.util
import json
import os
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from stand_in_server.answer import answer
from stand_in_server.faults import Knobs, mangled, next_fault
from stand_in_server.passage import Passage, embed, hash_64
from stand_in_server.request import RefusalError, content_of, log_probabilities
from stand_in_server.schema import fill


class InFlight:
    """How many calls are at work, and the most there ever were at once."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.most = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            yield
        finally:
            self.now -= 1


class Stats:
    """Everything since the start or the last reset. Calls that are at work stay counted through a reset."""

    def __init__(self) -> None:
        self.chats, self.embedding_calls = InFlight(), InFlight()
        self.reset()

    def reset(self) -> None:
        self.cpu_start = time.process_time()
        self.kinds: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.embeddings: Counter[str] = Counter()
        self.chats.most = self.embedding_calls.most = 0
        self.texts: list[tuple[str, str]] = []  # of prompts and replies: counted when asked, so a run costs nothing

    def report(self) -> dict[str, Any]:
        prompts, replies = zip(*self.texts, strict=True) if self.texts else ((), ())
        return {
            "requests": self.requests.total(),
            "prompt_tokens": sum(map(count_tokens, prompts)),
            "completion_tokens": sum(map(count_tokens, replies)),
            "max_concurrency": self.chats.most,
            "repeated_requests": self.requests.total() - len(self.requests),
            "faults": dict(self.faults),
            "kinds": {kind: {"requests": count} for kind, count in self.kinds.items()},
            "embeddings": {**self.embeddings, "max_concurrency": self.embedding_calls.most},
            "models": dict(self.models),
            "server_cpu_s": round(time.process_time() - self.cpu_start, 3),
        }


class Service:
    """The state of one server: its knobs, its counts and its slots."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.stats = Stats()
        self.slots = self._slots()

    def configure(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            try:
                self.knobs.set(name, value)
            except KeyError:
                raise RefusalError(400, f"unknown knob {name}", "invalid_request_error") from None
        self.slots = self._slots()
        return asdict(self.knobs)

    def _slots(self) -> AbstractAsyncContextManager[Any]:
        return asyncio.Semaphore(self.knobs.slots) if self.knobs.slots else nullcontext()

    async def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.stats.chats.call():
            self.stats.models[str(body.get("model"))] += 1
            prompt = "\n".join(content_of(message) for message in body.get("messages") or [])
            key = _key(body)
            self.stats.requests[key] += 1
            kind, text = answer(body)
            if (function := _function_asked(body, prompt)) is not None:
                passage = Passage(content_of((body["messages"] or [{}])[-1]))
                text = json.dumps(fill(function.get("parameters") or {}, "root", passage), ensure_ascii=False)
                kind = "tool:" + function["name"]
            self.stats.kinds[kind] += 1
            context = self.knobs.context_tokens
            if context and len(prompt) > 4 * context:
                self.stats.faults["context"] += 1
                message = f"This model's maximum context length is {context} tokens; reduce the length."
                raise RefusalError(400, message, "invalid_request_error")
            text = await self._spoilt(text, next_fault(key, self.stats.attempts, self.knobs), key)
            limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or 0)
            cut = 0 < 4 * limit < len(text)
            text = text[: 4 * limit] if cut else text
            async with self.slots:
                await asyncio.sleep(self.knobs.latency_ms / 1000)
            self.stats.texts.append((prompt, text))
            tokens = max(1, len(prompt) // 4), max(1, len(text) // 4)
            return _completion(body, key, text, function, "length" if cut else "stop", tokens)

    async def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.stats.embedding_calls.call():
            texts = _texts(body.get("input"))
            dimension = int(body.get("dimensions") or self.knobs.dim)
            self.stats.embeddings.update(requests=1, inputs=len(texts))
            if self.knobs.rate_429:
                key = f"emb{hash_64(*texts)}"
                if next_fault(key, self.stats.attempts, self.knobs) == "429":
                    self.stats.faults["embed_429"] += 1
                    raise self._too_many()
            vectors: list[Any] = [embed(text, dimension) for text in texts]
            await asyncio.sleep(self.knobs.embed_latency_ms / 1000)
            if body.get("encoding_format") == "base64":
                vectors = [base64.b64encode(struct.pack(f"<{dimension}f", *vector)).decode() for vector in vectors]
            tokens = sum(map(len, texts)) // 4
            return {
                "object": "list",
                "model": body.get("model", "fake-embed"),
                "data": [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)],
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }

    async def _spoilt(self, text: str, fault: str | None, key: str) -> str:
        """The text with its fault, if it has one and is still a reply; otherwise raises."""
        if fault is None:
            return text
        self.stats.faults[fault] += 1
        if fault in ("429", "500"):
            await asyncio.sleep(min(self.knobs.latency_ms, 50) / 1000)
            raise self._too_many() if fault == "429" else RefusalError(500, "The server had an error", "server_error")
        if fault == "timeout":
            await asyncio.sleep(self.knobs.timeout_s)
            raise RefusalError(0, close=True)
        return "" if fault == "empty" else mangled(text, key, self.stats.attempts[key])

    def _too_many(self) -> RefusalError:
        wait = {"Retry-After": str(self.knobs.retry_after)}
        return RefusalError(429, "Rate limit reached", "rate_limit_exceeded", wait)


def _key(body: dict[str, Any]) -> str:
    parts = [body.get("messages"), body.get("response_format"), body.get("tools")]
    return hashlib.blake2b(json.dumps(parts, sort_keys=True, default=str).encode(), digest_size=12).hexdigest()


def _function_asked(body: dict[str, Any], prompt: str) -> dict[str, Any] | None:
    """The tool that the request names, or the first of its tools; None where no tool is to be called."""
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    if not tools or choice == "none" or "Your output fields are:" in prompt:
        return None
    name = (choice.get("function") or {}).get("name") if isinstance(choice, dict) else None
    functions: list[dict[str, Any]] = [tool.get("function", {}) for tool in tools]
    return next((function for function in functions if function.get("name") == name), functions[0])


def _completion(
    body: dict[str, Any],
    key: str,
    text: str,
    function: dict[str, Any] | None,
    finish: str,
    tokens: tuple[int, int],
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if function:
        call = {"name": function["name"], "arguments": text}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_" + key[:12], "type": "function", "function": call}],
        }
        finish = "tool_calls"
    logprobs = log_probabilities(text, int(body.get("top_logprobs") or 0)) if body.get("logprobs") else None
    n, (prompt, completion) = int(body.get("n") or 1), tokens
    return {
        "id": "chatcmpl-" + key,
        "object": "chat.completion",
        "created": 1700000000,
        "model": body.get("model", "fake"),
        "choices": [{"index": k, "message": message, "logprobs": logprobs, "finish_reason": finish} for k in range(n)],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion * n,
            "total_tokens": prompt + completion * n,
        },
        "system_fingerprint": "fake",
    }


def _texts(value: Any) -> list[str]:
    """A text, several, or lists of tokens."""
    texts = value if isinstance(value, list) else [value]
    if texts and isinstance(texts[0], int):
        texts = [texts]
    if texts and isinstance(texts[0], list):
        tokenizer = encoder()
        texts = [tokenizer.decode(tokens) if tokenizer else " ".join(map(str, tokens)) for tokens in texts]
    return texts


def count_tokens(text: str) -> int:
    """Exact with tiktoken, else a quarter of the letters."""
    tokenizer = encoder()
    return len(tokenizer.encode(text, disallowed_special=())) if tokenizer else len(text) // 4


@cache
def encoder() -> Any:
    """tiktoken's cl100k_base, from the file that litellm brings where no other is set; None where there is none."""
    litellm = importlib.util.find_spec("litellm")
    if "TIKTOKEN_CACHE_DIR" not in os.environ and litellm and litellm.submodule_search_locations:
        folder = Path(litellm.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding("cl100k_base")
    except (ImportError, OSError):
        return None
