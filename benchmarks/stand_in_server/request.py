"""Reads a chat request into the parts by which its kind is recognised."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stand_in_server.passage import hash_unit

Reply = tuple[str, str]  # the kind of prompt, and the text of the answer


@dataclass(frozen=True)
class ChatRequest:
    """The body of a chat request. A prompt without a user's turn counts as one."""

    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages") or []

    @cached_property
    def system(self) -> str:
        return "\n".join(content_of(m) for m in self.messages if m.get("role") in ("system", "developer"))

    @cached_property
    def users(self) -> list[str]:
        return [content_of(m) for m in self.messages if m.get("role") == "user"]

    @property
    def first(self) -> str:
        return self.users[0] if self.users else self.system

    @property
    def last(self) -> str:
        return self.users[-1] if self.users else self.system

    @cached_property
    def text(self) -> str:
        return self.system + "\n" + "\n".join(self.users)

    @property
    def response_format(self) -> dict[str, Any]:
        value = self.body.get("response_format")
        return value if isinstance(value, dict) else {}

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the reply must follow, if the request has one."""
        return (self.response_format.get("json_schema") or {}).get("schema")


def content_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def between(text: str, start: str, end: str | None, last: bool = False) -> str | None:
    """What stands after `start`, up to `end` or the end of the text; None without `start`."""
    at = text.rfind(start) if last else text.find(start)
    if at < 0:
        return None
    at += len(start)
    stop = text.find(end, at) if end else len(text)
    return text[at : stop if stop >= 0 else len(text)]


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
