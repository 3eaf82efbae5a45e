"""Sums up how long the stages take: measured time, and the papers' model of what parallel branches would take.

A program's `timings` maps a stage to seconds, or to a list of seconds, one for each branch that does not wait for the
others (drafts, verifications). The key "total" is the wall-clock time of the whole call. The two kinds of figure have
two types here, because adding the one to the other means nothing: `wall_time` and `stage_times` are measured,
`parallel_model` is an estimate.
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


@dataclass(frozen=True, slots=True)
class ModelledLatency:
    """Seconds that a query would take if all branches of a stage ran at once: an estimate, never wall-clock time.

    `stages` holds the median of each stage; `total` is their sum.
    """

    stages: Mapping[str, float]
    total: float
    n: int


def wall_time(timings: Sequence[Timings]) -> Percentiles:
    """Percentiles of the measured time of whole calls (key "total")."""
    return _percentiles(_column(timings, TOTAL))


def stage_times(timings: Sequence[Timings]) -> dict[str, Percentiles]:
    """Percentiles of each stage, in the order in which stages first occur, without "total".

    A stage with branches counts with its slowest branch; how long the branches took together depends on what they
    shared, so it is only in "total". Raises EvaluationError naming the row for a stage that a row lacks (a stage that
    was skipped took 0.0), an empty list, or a time that is NaN, infinite or negative.
    """
    return {stage: _percentiles(_column(timings, stage)) for stage in _stages(timings)}


def parallel_model(timings: Sequence[Timings]) -> ModelledLatency:
    """Sum over the papers' stages of the median over the queries; a stage with branches counts with its slowest one.

    KRAQ paper, appendix D.1; thesis, equation 5.5. Speculative RAG has four stages there, and what a query spent on the
    parts of one is added up before the median is taken: a part that most queries skip (embedding, where vectors are
    looked up) would else be lost. Errors as in `stage_times`.

    >>> parallel_model([{"lookup": 0.5, "embed": 2.0}, {"lookup": 0.5, "embed": 2.0}]).stages
    {'embed and cluster': 2.5}
    """
    columns = {stage: _column(timings, stage) for stage in _stages(timings)}
    medians: dict[str, float] = {}
    for name in dict.fromkeys(_PAPER_STAGE.get(stage, stage) for stage in columns):
        parts = [column for stage, column in columns.items() if _PAPER_STAGE.get(stage, stage) == name]
        medians[name] = float(np.median([math.fsum(seconds) for seconds in zip(*parts, strict=True)]))
    return ModelledLatency(medians, math.fsum(medians.values()), len(timings))


def _stages(timings: Sequence[Timings]) -> list[str]:
    stages = [stage for stage in dict.fromkeys(stage for row in timings for stage in row) if stage != TOTAL]
    if not stages:
        raise EvaluationError("There are no timings of stages. Programs return them in their prediction's `timings`.")
    return stages


def _column(timings: Sequence[Timings], stage: str) -> list[float]:
    if not timings:
        raise EvaluationError(f"There are no timings, so the latency of {stage!r} is undefined.")
    return [_seconds(row, position, stage) for position, row in enumerate(timings)]


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


def _percentiles(seconds: list[float]) -> Percentiles:
    p50, p90, p99 = np.percentile(seconds, [50, 90, 99])
    return Percentiles(len(seconds), float(p50), float(p90), float(p99), math.fsum(seconds) / len(seconds))
