"""Reads a chat request into the parts by which its kind is recognised."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
