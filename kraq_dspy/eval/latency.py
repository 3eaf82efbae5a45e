"""Sums up how long the stages take: measured time, and the papers' model of what parallel branches would take.

A program's `timings` maps a stage to seconds, or to a list of seconds, one for each branch that does not wait for the
others (drafts, verifications). The key "total" is the wall-clock time of the whole call.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kraq_dspy.errors import EvaluationError

Timings = Mapping[str, float | Sequence[float]]
TOTAL = "total"
PAPER_STAGES = {
    "retrieve": ("retrieve",),
    "embed and cluster": ("proxy", "lookup", "embed", "cluster"),
    "draft and verify": ("draft", "draft_max", "verify", "verify_max"),
    "select": ("select",),
}
"""The papers' four stages of Speculative RAG, and what our programs time of each. Others are stages of their own."""
_PAPER_STAGE = {part: stage for stage, parts in PAPER_STAGES.items() for part in parts}


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds over `n` queries. With few queries p90 and p99 are interpolated between the slowest ones."""

    n: int
    p50: float
    p90: float
    p99: float
    mean: float


def wall_time(timings: Sequence[Timings]) -> Percentiles:
    """Percentiles of the measured time of whole calls (key "total")."""
    return _percentiles([_seconds(row, position, TOTAL) for position, row in enumerate(timings)])


def stage_times(timings: Sequence[Timings]) -> dict[str, Percentiles]:
    """Percentiles of each stage, in the order in which stages first occur, without "total".

    Speculative RAG has the papers' four stages: what a query spent on the parts of one is added up first, since a part
    that most queries skip (embedding, where vectors are looked up) would else be lost. A stage with branches counts
    with its slowest branch. Raises EvaluationError naming the row for a stage that a row lacks (a stage that was
    skipped took 0.0), an empty list, or a time that is NaN, infinite or negative.

    >>> stage_times([{"lookup": 0.5, "embed": 2.0}, {"lookup": 0.5, "embed": 2.0}])["embed and cluster"].p50
    2.5
    """
    parts: dict[str, list[str]] = {}
    for part in dict.fromkeys(part for row in timings for part in row if part != TOTAL):
        parts.setdefault(_PAPER_STAGE.get(part, part), []).append(part)
    return {
        stage: _percentiles(
            [math.fsum(_seconds(row, position, part) for part in of_stage) for position, row in enumerate(timings)]
        )
        for stage, of_stage in parts.items()
    }


def parallel_seconds(stages: Mapping[str, Percentiles]) -> float:
    """The sum over the stages of their medians: what a query would take if all branches of a stage ran at once.

    An estimate, never wall-clock time (KRAQ paper, appendix D.1; thesis, equation 5.5).
    """
    return math.fsum(times.p50 for times in stages.values())


def _seconds(row: Timings, position: int, stage: str) -> float:
    if stage not in row:
        raise EvaluationError(f"Row {position} has no time for {stage!r}; a stage that was skipped takes 0.0.")
    value = row[stage]
    branches = [value] if isinstance(value, int | float) else list(value)
    if not branches:
        raise EvaluationError(f"Row {position}: the stage {stage!r} has an empty list of branches.")
    for seconds in branches:
        if not math.isfinite(seconds) or seconds < 0:
            raise EvaluationError(f"Row {position}: the stage {stage!r} took {seconds} s; expected 0 or more.")
    return float(max(branches))


def _percentiles(seconds: Sequence[float]) -> Percentiles:
    if not seconds:
        raise EvaluationError("There are no timings, so the latency is undefined.")
    p50, p90, p99 = np.percentile(seconds, [50, 90, 99])
    return Percentiles(len(seconds), float(p50), float(p90), float(p99), math.fsum(seconds) / len(seconds))
