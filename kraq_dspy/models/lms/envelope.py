"""Hears what the envelope of a reply says: that it was cut off, withheld or refused, or holds no answer at all.

DSPy hands on the text of a reply and not why it ended. So the engine reports it here, and the
adapter or the caller of a program listens, since no argument leads from an engine up to them.
DSPy's own adapters learn by `adapter_fallback_scope` in the same way whether anything was streamed.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

import dspy
from dspy.lm15 import DataPart, RefusalPart, Request, Response, TextPart

from kraq_dspy._internal.display import whole_text

QUOTED = 200  # characters of a refusal


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a reply is less than what was asked for, and `words` for whoever reads of it. `text` is what there is."""

    why: Literal["length", "filtered", "refused", "empty", "unreadable"]
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
    """Tell whoever listens, if there is a flaw."""
    heard = _listeners.get()
    if heard is not None and flaw is not None:
        heard.append(flaw)


def with_flaws(prediction: dspy.Prediction, heard: Sequence[Flaw]) -> dspy.Prediction:
    """The prediction, which has the words of the flaws as `flaws` if there are any."""
    if heard:
        prediction["flaws"] = tuple(dict.fromkeys(flaw.words for flaw in heard))
    return prediction


def opened(response: Response, request: Request) -> Response:
    """Rejoin split surrogate pairs and report the reply's flaws."""
    tell(flaw_of(response, request.config.max_tokens))
    parts = tuple(
        dataclasses.replace(part, text=whole_text(part.text)) if isinstance(part, TextPart) else part
        for part in response.message.parts
    )
    return dataclasses.replace(response, message=dataclasses.replace(response.message, parts=parts))


def flaw_of(response: Response, max_tokens: int | None = None) -> Flaw | None:
    """Return what is wrong with the reply by its envelope; None if nothing is."""
    parts = response.message.parts
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    has_answer = bool(text.strip()) or any(isinstance(part, DataPart) for part in parts)

    refusals = [part.text for part in parts if isinstance(part, RefusalPart)]
    if refusals:
        return Flaw("refused", f"the model refused: {' '.join(refusals[0].split())[:QUOTED]!r}", text)

    if response.finish_reason == "content_filter":
        return Flaw("filtered", "the server's content filter withheld the reply, or its rest", text)
    if response.finish_reason == "length":
        if has_answer:
            return Flaw("length", cut_off(max_tokens), text)
        return Flaw("length", f"the model spent all its tokens{_limit(max_tokens)} before any answer; raise max_tokens")

    if has_answer or not parts:
        return None
    what = f"called the tool {response.tool_calls[0].name!r}" if response.tool_calls else "thought"
    return Flaw("empty", f"the model {what} and wrote no answer")


def cut_off(max_tokens: int | None) -> str:
    """The words for a reply that was cut off at this limit; None is the server's own.

    >>> cut_off(320)
    'the reply was cut off at the limit of tokens (max_tokens = 320); raise max_tokens'
    """
    return f"the reply was cut off at the limit of tokens{_limit(max_tokens)}; raise max_tokens"


def _limit(max_tokens: int | None) -> str:
    return f" (max_tokens = {max_tokens})" if max_tokens else ""
