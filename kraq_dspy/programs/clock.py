"""Measures how long each stage of a program took."""

from time import perf_counter


class Clock:
    """Seconds by stage, from when it is made."""

    def __init__(self) -> None:
        self._started = self._last = perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """End of a stage, which began with the end of the one before."""
        now = perf_counter()
        self._laps[stage] = now - self._last
        self._last = now

    def timings(self) -> dict[str, float]:
        """Each stage, and "wall": all until now."""
        return {**self._laps, "wall": perf_counter() - self._started}
