"""Writes replies in OpenAI's shapes: a message, an error, log-probabilities, server-sent events."""

import json
import re
from typing import Any

from stand_in_server.passage import hash_unit

OPPOSITES = {"yes": ["no"], "no": ["yes"], "true": ["false"], "false": ["true"]}


class RefusalError(Exception):
    """Any status but 200. `close` hangs up without a word."""

    def __init__(
        self, status: int, message: str = "", kind: str = "", headers: dict[str, str] | None = None, close: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.headers, self.close = status, headers or {}, close
        self.body = {"error": {"message": message, "type": kind, "code": str(status), "param": None}}


def log_probabilities(text: str, top: int) -> dict[str, Any]:
    """Of each word and mark, by a hash, with `top` others beside it."""
    tokens = re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text) or [text]
    content = []
    for n, token in enumerate(tokens):
        value = -0.01 - 1.2 * hash_unit("lp", token, n) ** 3
        likeliest = [_token(token, value)]
        word = token.strip().lower()
        others = [*OPPOSITES.get(word, []), "A", "B", "C", "D", "the", "and", "Yes", "No"]
        for k, other in enumerate(other for other in others if other.lower() != word):
            if len(likeliest) >= top:
                break
            likeliest.append(_token(other, value - 1.5 - k - hash_unit("alt", token, other)))
        content.append({**_token(token, value), "top_logprobs": likeliest[:top] if top else []})
    return {"content": content, "refusal": None}


def _token(text: str, value: float) -> dict[str, Any]:
    return {"token": text, "logprob": value, "bytes": list(text.encode())}


def as_events(reply: dict[str, Any], with_usage: bool) -> bytes:
    """A finished reply as server-sent events: four pieces, the end, and the usage if asked for."""
    choice = reply["choices"][0]
    text = choice["message"]["content"] or ""
    size = max(1, -(-len(text) // 4))
    deltas: list[tuple[dict[str, str], str | None]] = [
        ({"role": "assistant", "content": text[at : at + size]}, None) for at in range(0, len(text), size)
    ]
    deltas.append(({}, choice["finish_reason"]))
    base = {name: reply[name] for name in ("id", "created", "model", "system_fingerprint")}
    base["object"] = "chat.completion.chunk"
    events = [
        {**base, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}]}
        for delta, end in deltas
    ]
    if with_usage:
        events.append({**base, "choices": [], "usage": reply["usage"]})
    lines = ["data: " + json.dumps(event, ensure_ascii=False) for event in events]
    return ("\n\n".join([*lines, "data: [DONE]"]) + "\n\n").encode()
