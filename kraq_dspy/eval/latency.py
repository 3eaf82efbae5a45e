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
"""The papers' four stages of Speculative RAG, and what our programs time of each. Others are stages of their own.

A row has the seconds of every draft ("draft"), or those of the slowest alone ("draft_max"); the same of verifications.
"""
_STAGE_OF_PART = {part: stage for stage, parts in PAPER_STAGES.items() for part in parts}


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds over `n` queries. With few queries p90 and p99 are interpolated between the slowest ones."""

    n: int
    p50: float
    p90: float
    p99: float
    mean: float


def stage_times(timings: Sequence[Timings]) -> dict[str, Percentiles]:
    """Percentiles of each stage, in the order in which stages first occur; "total" is one of its own.

    Speculative RAG has the papers' four stages: what a query spent on the parts of one is added up first. A stage with
    branches counts with its slowest. Raises EvaluationError naming the row for a stage that a row lacks (one that was
    skipped took 0.0), or a time that is NaN, infinite or negative.

    >>> stage_times([{"lookup": 0.5, "embed": 2.0}, {"lookup": 0.5, "embed": 2.0}])["embed and cluster"].p50
    2.5
    """
    parts_of_stage: dict[str, list[str]] = {}
    for part in dict.fromkeys(part for row in timings for part in row):
        parts_of_stage.setdefault(_STAGE_OF_PART.get(part, part), []).append(part)

    stages = {}
    for stage, parts in parts_of_stage.items():
        seconds = [sum(_seconds(row, number, part) for part in parts) for number, row in enumerate(timings)]
        p50, p90, p99 = (float(value) for value in np.percentile(seconds, [50, 90, 99]))
        stages[stage] = Percentiles(len(seconds), p50, p90, p99, math.fsum(seconds) / len(seconds))
    return stages


def parallel_seconds(stages: Mapping[str, Percentiles]) -> float:
    """The sum over the stages of their medians: what a query would take if all branches of a stage ran at once.

    An estimate, never wall-clock time (KRAQ paper, appendix D.1; thesis, equation 5.5).
    """
    return math.fsum(times.p50 for stage, times in stages.items() if stage != TOTAL)


def _seconds(row: Timings, number: int, stage: str) -> float:
    """What a row says of a stage or a part of one; of several branches the slowest."""
    if stage not in row:
        raise EvaluationError(f"Row {number} has no time for {stage!r}; a stage that was skipped takes 0.0.")

    value = row[stage]
    branches = [value] if isinstance(value, int | float) else value
    if not branches or not all(math.isfinite(seconds) and seconds >= 0 for seconds in branches):
        raise EvaluationError(f"Row {number}: the stage {stage!r} took {value} s; expected 0 or more.")
    return float(max(branches))
