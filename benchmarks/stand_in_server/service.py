"""Answers the two model endpoints, with the delays and faults that the knobs ask for."""

import asyncio
import base64
import hashlib
import importlib.util
import json
import os
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from stand_in_server.answer import answer
from stand_in_server.faults import Knobs, mangled, next_fault
from stand_in_server.passage import Passage, embed, hash_64, hash_unit
from stand_in_server.request import RefusalError, content_of, log_probabilities
from stand_in_server.schema import fill

SERVER_FAULTS = {"429": "Rate limit reached", "500": "The server had an error", "503": "Overloaded"}


@dataclass
class KindStats:
    """Of the requests of one kind of prompt. `counted` are those whose tokens were counted exactly."""

    requests: int = 0
    prompt_chars: int = 0
    completion_chars: int = 0
    busy_s: float = 0.0
    first: float | None = None
    last: float | None = None
    faults: int = 0
    counted: Counter[str] = field(default_factory=Counter)

    def tokens(self, part: str) -> int:
        """Of the prompts or the completions: exact where texts were kept, else a quarter of the letters."""
        letters: int = getattr(self, f"{part}_chars")
        if chars := self.counted[f"{part}_chars"]:
            return round(self.counted[f"{part}_tokens"] * letters / chars)
        return letters // 4

    def report(self, start: float) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "prompt_chars": self.prompt_chars,
            "completion_chars": self.completion_chars,
            "busy_s": round(self.busy_s, 3),
            "first": _since(start, self.first),
            "last": _since(start, self.last),
            "faults": self.faults,
            "prompt_tokens": self.tokens("prompt"),
            "completion_tokens": self.tokens("completion"),
        }


@dataclass
class EmbeddingStats:
    requests: int = 0
    inputs: int = 0
    chars: int = 0
    first: float | None = None
    last: float | None = None


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
        self.start, self.cpu_start = time.time(), time.process_time()
        self.kinds: defaultdict[str, KindStats] = defaultdict(KindStats)
        self.embeddings = EmbeddingStats()
        self.faults: Counter[str] = Counter()
        self.malformed_modes: Counter[str] = Counter()
        self.requests_seen: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.log: list[dict[str, Any]] = []
        self.chats.most = self.embedding_calls.most = 0
        self._texts: list[tuple[str, str, str]] = []
        self._kept = 0

    def keep(self, kind: str, prompt: str, completion: str, limit: float) -> None:
        """Texts whose tokens are counted when somebody asks, so that counting costs nothing during a run."""
        if self._kept < limit:
            self._texts.append((kind, prompt, completion))
            self._kept += len(prompt) + len(completion)

    def report(self, config: dict[str, Any]) -> dict[str, Any]:
        self._count_tokens()
        kinds = {name: kind.report(self.start) for name, kind in self.kinds.items()}
        starts = [kind.first for kind in self.kinds.values() if kind.first]
        ends = [kind.last for kind in self.kinds.values() if kind.last]
        span = max(ends) - min(starts) if starts and ends else 0.0
        busy = sum(kind.busy_s for kind in self.kinds.values())
        return {
            "requests": _total(kinds.values(), "requests"),
            "prompt_tokens": _total(kinds.values(), "prompt_tokens"),
            "completion_tokens": _total(kinds.values(), "completion_tokens"),
            "max_concurrency": self.chats.most,
            "span_s": round(span, 3),
            "avg_concurrency": round(busy / span, 2) if span else 0,
            "unique_requests": len(self.requests_seen),
            "repeated_requests": self.requests_seen.total() - len(self.requests_seen),
            "faults": dict(self.faults),
            "malformed_modes": dict(self.malformed_modes),
            "kinds": kinds,
            "embeddings": {
                "requests": self.embeddings.requests,
                "inputs": self.embeddings.inputs,
                "chars": self.embeddings.chars,
                "first": _since(self.start, self.embeddings.first),
                "last": _since(self.start, self.embeddings.last),
                "tokens": self.embeddings.chars // 4,
                "max_concurrency": self.embedding_calls.most,
            },
            "models": dict(self.models),
            "server_cpu_s": round(time.process_time() - self.cpu_start, 3),
            "token_counter": "cl100k_base" if encoder() else "chars/4",
            "config": config,
        }

    def _count_tokens(self) -> None:
        if (tokenizer := encoder()) is None:
            return
        for name, prompt, completion in self._texts:
            counted = self.kinds[name].counted
            for part, text in (("prompt", prompt), ("completion", completion)):
                counted[f"{part}_tokens"] += len(tokenizer.encode(text, disallowed_special=()))
                counted[f"{part}_chars"] += len(text)
        self._texts.clear()
        self._kept = 0


class Service:
    """The state of one server: its knobs, its counts, its slots and its budget of requests a minute."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.stats = Stats()
        self.requests_left = RequestBudget()
        self.slots = self._slots()

    def configure(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            try:
                self.knobs.set(name, value)
            except KeyError:
                raise RefusalError(400, f"unknown knob {name}", "invalid_request_error") from None
        self.slots = self._slots()
        return asdict(self.knobs)

    def reset(self) -> None:
        self.stats.reset()
        self.requests_left = RequestBudget()

    def _slots(self) -> AbstractAsyncContextManager[Any]:
        return asyncio.Semaphore(self.knobs.slots) if self.knobs.slots else nullcontext()

    async def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        start = time.time()
        with self.stats.chats.call():
            self.stats.models[str(body.get("model"))] += 1
            prompt = "\n".join(content_of(message) for message in body.get("messages") or [])
            key = _key(body)
            self.stats.requests_seen[key] += 1
            kind, text = answer(body)
            if (function := _function_asked(body, prompt)) is not None:
                passage = Passage(content_of((body["messages"] or [{}])[-1]))
                text = json.dumps(fill(function.get("parameters") or {}, "root", passage), ensure_ascii=False)
                kind = "tool:" + function["name"]
            counts = self.stats.kinds[kind]
            counts.requests += 1
            counts.first = counts.first or start
            counts.prompt_chars += len(prompt)
            self._refuse(counts, prompt)
            text = await self._spoilt(text, next_fault(key, kind, self.stats.attempts, self.knobs), key, counts)
            limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or 0)
            cut = 0 < 4 * limit < len(text)
            text = text[: 4 * limit] if cut else text
            prompt_tokens, tokens = max(1, len(prompt) // 4), max(1, len(text) // 4)
            async with self.slots:
                await asyncio.sleep(self._delay(key, prompt_tokens, tokens))
            self._count(counts, start, text)
            self.stats.keep(kind, prompt, text, self.knobs.keep_mb * 1e6)
            if self.knobs.verbose and len(self.stats.log) < 400:
                self.stats.log.append({"kind": kind, "body": body, "answer": text})
            return _completion(body, key, text, function, "length" if cut else "stop", (prompt_tokens, tokens))

    async def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        start = time.time()
        with self.stats.embedding_calls.call():
            texts = _texts(body.get("input"))
            dimension = int(body.get("dimensions") or self.knobs.dim)
            counts = self.stats.embeddings
            counts.requests += 1
            counts.inputs += len(texts)
            counts.chars += sum(map(len, texts))
            counts.first = counts.first or start
            if self.knobs.rate_429 and not self.knobs.fault_kinds:
                key = f"emb{hash_64(*texts)}"
                if next_fault(key, "embed", self.stats.attempts, self.knobs) == "429":
                    self.stats.faults["embed_429"] += 1
                    raise self._too_many("Rate limit reached")
            vectors: list[Any] = [embed(text, dimension) for text in texts]
            await asyncio.sleep(self.knobs.embed_latency_ms / 1000)
            if body.get("encoding_format") == "base64":
                vectors = [base64.b64encode(struct.pack(f"<{dimension}f", *vector)).decode() for vector in vectors]
            tokens = sum(map(len, texts)) // 4
            counts.last = time.time()
            return {
                "object": "list",
                "model": body.get("model", "fake-embed"),
                "data": [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)],
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }

    def _refuse(self, counts: KindStats, prompt: str) -> None:
        """Raises for a budget of requests that is spent, and for a prompt that is too long."""
        if self.knobs.rpm and not self.requests_left.take(self.knobs.rpm):
            self._fault("rpm_429", counts)
            raise self._too_many("Rate limit reached for requests")
        context = self.knobs.context_tokens
        if context and len(prompt) > 4 * context:
            self._fault("context", counts)
            message = f"This model's maximum context length is {context} tokens; reduce the length."
            raise RefusalError(400, message, "invalid_request_error")

    async def _spoilt(self, text: str, fault: str | None, key: str, counts: KindStats) -> str:
        """The text with its fault, if it has one and is still a reply; otherwise raises."""
        if fault is None:
            return text
        self._fault(fault, counts)
        if fault in SERVER_FAULTS:
            await asyncio.sleep(min(self.knobs.latency_ms, 50) / 1000)
            if fault == "429":
                raise self._too_many(SERVER_FAULTS[fault])
            raise RefusalError(int(fault), SERVER_FAULTS[fault], "server_error")
        if fault == "timeout":
            await asyncio.sleep(self.knobs.timeout_s)
            counts.last = time.time()
            raise RefusalError(0, close=True)
        if fault == "empty":
            return ""
        mode, text = mangled(text, key, self.stats.attempts[key])
        self.stats.malformed_modes[mode] += 1
        return text

    def _fault(self, name: str, counts: KindStats) -> None:
        self.stats.faults[name] += 1
        counts.faults += 1
        counts.last = time.time()

    def _too_many(self, message: str) -> RefusalError:
        return RefusalError(429, message, "rate_limit_exceeded", {"Retry-After": str(self.knobs.retry_after)})

    def _delay(self, key: str, prompt_tokens: int, tokens: int) -> float:
        """Seconds that the model seems to think."""
        knobs = self.knobs
        delay = knobs.latency_ms + knobs.per_token_ms * tokens + knobs.per_ktok_in_ms * prompt_tokens / 1000
        return delay / 1000 * (1 + knobs.jitter * (2 * hash_unit("jit", key) - 1))

    def _count(self, counts: KindStats, start: float, text: str) -> None:
        counts.completion_chars += len(text)
        counts.last = time.time()
        counts.busy_s += counts.last - start


class RequestBudget:
    """Requests that may still come: ten seconds' worth at most, filled up as time goes by."""

    def __init__(self) -> None:
        self.left = 0.0
        self.moment = 0.0

    def take(self, per_minute: float) -> bool:
        now = time.time()
        most = max(1.0, per_minute / 6)
        self.left = min(most, self.left + (now - self.moment) * per_minute / 60) if self.moment else most
        self.moment = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


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


def _total(kinds: Iterable[dict[str, Any]], name: str) -> int:
    return sum(kind[name] for kind in kinds)


def _since(start: float, moment: float | None) -> float | None:
    return round(moment - start, 3) if moment else None
