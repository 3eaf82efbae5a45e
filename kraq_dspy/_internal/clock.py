"""Measures how long each stage of a program takes, and tells whoever streams the program that it begins."""

from contextvars import ContextVar
from time import perf_counter
from typing import Any

import dspy
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token
from dspy.streaming import StatusMessage, StreamListener

from kraq_dspy._internal.both_ways import is_blocking


class Clock:
    """Seconds by stage, for a prediction's `timings`.

    >>> from kraq_dspy._internal.both_ways import run
    >>> clock = Clock()
    >>> run(clock.begin("retrieve"))
    >>> list(clock.timings())
    ['retrieve', 'wall']
    """

    def __init__(self) -> None:
        self._started = self._stage_started = perf_counter()
        self._stage = ""
        self._seconds: dict[str, float] = {}

    async def begin(self, stage: str, announcement: str = "") -> None:
        """A stage, with which the one before it ends. `announcement` is what a stream is told of it (`announce`)."""
        self._end()
        self._stage = stage
        if announcement:
            await announce(announcement)

    def timings(self) -> dict[str, float]:
        """Each stage, and "wall": all since the clock was made. The last stage ends with this."""
        self._end()
        return {**self._seconds, "wall": perf_counter() - self._started}

    def _end(self) -> None:
        now = perf_counter()
        if self._stage:
            self._seconds[self._stage] = now - self._stage_started
        self._stage, self._stage_started = "", now


_audience: ContextVar[tuple[Any, EventLoopToken | None] | None] = ContextVar("kraq_dspy_audience", default=None)
"""The stream of the program at work, and the loop that it belongs to where the program runs in threads."""


async def announce(stage: str) -> None:
    """Send `stage` as a `StatusMessage`; nothing if nobody streams the program.

    A program announces its first stage before it does anything else, so that its threads know where to send theirs.
    """
    blocking = await is_blocking()
    audience = _audience.get()
    stream = dspy.settings.send_stream
    if stream is not None and (audience is None or audience[0] is not stream):
        audience = stream, from_thread.run_sync(current_token) if blocking else None
        _audience.set(audience)
    if audience is None:
        return

    stream, token = audience
    if blocking:
        from_thread.run(stream.send, StatusMessage(stage), token=token)
    else:
        await stream.send(StatusMessage(stage))


class AnswerListener(StreamListener):  # type: ignore[misc]
    """DSPy's own, which knows the markers of a reply by the name of the adapter's class: KraqAdapter's are the same."""

    def __init__(self, field: str = "answer", **options: Any) -> None:
        super().__init__(field, **options)
        self.adapter_identifiers["KraqAdapter"] = self.adapter_identifiers["ChatAdapter"]


def answer_listeners(program: dspy.Module) -> list[StreamListener]:
    """One for the step that writes the program's `answer`; none if that is chosen among drafts.

    For `dspy.streamify`. Like any listener it serves one stream at a time, and one after the other.
    """
    while isinstance(inner := getattr(program, "program", None), dspy.Module):
        program = inner
    step = getattr(program, "answer", None)
    if not isinstance(step, dspy.Predict) or "answer" not in step.signature.output_fields:
        return []
    return [AnswerListener("answer", predict=step, predict_name="answer", allow_reuse=True)]
