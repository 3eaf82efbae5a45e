"""Measures how long each stage of a program takes, and tells whoever streams the program that it begins."""

from time import perf_counter

from kraq_dspy._internal.announce import announce


class Clock:
    """Seconds by stage."""

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
