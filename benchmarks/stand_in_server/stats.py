"""Counts requests, tokens, faults and concurrency, for GET /stats."""

import importlib.util
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


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
