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
    """Return the listener for `dspy.streamify` that hears the step that writes a program's `answer`.

    The program may be a part of your own module. The list is empty if the program chooses its answer among drafts, or
    if several parts of your module write an answer and no part is named `answer`. A listener serves one stream at a
    time.
    """
    named = _answering_step(program)
    if named is None:
        return []
    name, step = named
    return [AnswerListener("answer", predict=step, predict_name=name, allow_reuse=True)]


def _answering_step(program: dspy.Module) -> tuple[str, dspy.Predict] | None:
    """(name, predictor) of what writes the program's answer: its part `answer`, else that of the only part inside it
    which has one."""
    inner = getattr(program, "program", None)
    if isinstance(inner, dspy.Module):
        return _answering_step(inner)

    step = getattr(program, "answer", None)
    if isinstance(step, dspy.Module):
        writes = _writing_answers(step)
        if len(writes) == 1:
            return "answer", writes[0]

    parts = [part for part in vars(program).values() if isinstance(part, dspy.Module) and part is not step]
    found = [inside for part in parts if (inside := _answering_step(part)) is not None]
    if found:
        return found[0] if len(found) == 1 else None
    writes = _writing_answers(program)
    is_plain = all(isinstance(part, dspy.Predict) for part in parts)
    return ("answer", writes[0]) if len(writes) == 1 and is_plain else None


def _writing_answers(program: dspy.Module) -> list[dspy.Predict]:
    """The predictors in it that have an `answer` among their outputs."""
    return [each for each in program.predictors() if "answer" in each.signature.output_fields]
