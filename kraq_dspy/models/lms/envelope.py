"""Hears what the envelope of a reply says: that it was cut off, withheld or refused, or holds no answer at all.

DSPy hands on the text of a reply and not why it ended. So the engine tells it here, and whoever listens hears it, as
DSPy's own adapters hear by `adapter_fallback_scope` whether anything was streamed: there is no argument on the way
from an engine up to an adapter, or to whoever asked a whole program.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import dspy
from dspy.lm15 import DataPart, RefusalPart, Request, Response, TextPart, ThinkingPart

from kraq_dspy._internal.display import whole_text

QUOTED = 200  # characters of a refusal

Why = Literal["length", "filtered", "refused", "tool call", "thinking", "unreadable"]


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a reply is less than what was asked for, and `words` for whoever reads of it. `text` is what there is."""

    why: Why
    words: str
    text: str = ""


_listeners: ContextVar[list[Flaw] | None] = ContextVar("kraq_dspy_flaws", default=None)


@contextmanager
def flaws_heard() -> Iterator[list[Flaw]]:
    """The flaws of all replies inside the block, as they come; who listens inside it, is told in its place."""
    heard: list[Flaw] = []
    token = _listeners.set(heard)
    try:
        yield heard
    finally:
        _listeners.reset(token)


def tell(flaw: Flaw | None) -> None:
    """Tell whoever listens, where there is a flaw."""
    heard = _listeners.get()
    if heard is not None and flaw is not None:
        heard.append(flaw)


def with_flaws(prediction: dspy.Prediction, heard: Sequence[Flaw]) -> dspy.Prediction:
    """The prediction, which has the words of the flaws as `flaws` where there are any."""
    if heard:
        prediction["flaws"] = tuple(dict.fromkeys(flaw.words for flaw in heard))
    return prediction


def opened(response: Response, request: Request) -> Response:
    """The response with halves of characters made whole; what its envelope says is told."""
    tell(flaw_of(response, request.config.max_tokens))
    parts = tuple(
        dataclasses.replace(part, text=whole_text(part.text)) if isinstance(part, TextPart) else part
        for part in response.message.parts
    )
    if parts == response.message.parts:
        return response
    return dataclasses.replace(response, message=dataclasses.replace(response.message, parts=parts))


def flaw_of(response: Response, max_tokens: int | None = None) -> Flaw | None:
    """What is wrong with the reply by its envelope; None where nothing is."""
    text = "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
    has_text = bool(text.strip()) or any(isinstance(part, DataPart) for part in response.message.parts)
    thinking = any(isinstance(part, ThinkingPart) and part.text.strip() for part in response.message.parts)
    limit = f" (max_tokens = {max_tokens})" if max_tokens else ""
    refusals = [part.text for part in response.message.parts if isinstance(part, RefusalPart)]
    if refusals:
        return Flaw("refused", f"the model refused: {' '.join(refusals[0].split())[:QUOTED]!r}", text)
    if response.finish_reason == "content_filter":
        what = "the rest of the reply" if has_text else "the reply"
        return Flaw("filtered", f"the server's content filter withheld {what}", text)
    if response.finish_reason == "length":
        if has_text:
            return Flaw("length", f"the reply was cut off at the limit of tokens{limit}; raise max_tokens", text)
        spent = "thinking, before any answer" if thinking else "what is no answer"
        return Flaw("length", f"the model spent all its tokens{limit} on {spent}; raise max_tokens")
    if has_text:
        return None
    if response.tool_calls:
        return Flaw("tool call", f"the model called the tool {response.tool_calls[0].name!r} and wrote no answer")
    return Flaw("thinking", "the model thought and wrote no answer") if thinking else None


class WholeCharacters:
    """The texts of a stream without halves of characters: one at the end of a part waits for the next."""

    def __init__(self) -> None:
        self._half = ""

    def of(self, event: Any) -> Any:
        if event.type != "delta" or event.delta.type != "text":
            return event
        text = self._half + event.delta.text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = whole_text(text.removesuffix(self._half))
        if text == event.delta.text:
            return event
        return dataclasses.replace(event, delta=dataclasses.replace(event.delta, text=text))
