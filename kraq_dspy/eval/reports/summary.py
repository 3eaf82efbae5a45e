"""Makes figures of rows: means with intervals, differences with paired tests, failures."""

import dataclasses
import math
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.halves import Decision, decisions
from kraq_dspy.eval.latency import Percentiles, stage_times
from kraq_dspy.eval.refused import RefusalRates, refusal_rates
from kraq_dspy.eval.rows import HEADER_FILE, ResultRow, RunHeader, read_run
from kraq_dspy.eval.statistics import SIGNIFICANT, Interval, bootstrap_mean, holm, paired_difference


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one system. `n_failed` have no score for a reason that their rows tell; `n_undefined` cannot have
    one (no gold answer, no known evidence). `quartiles` are the first and the third of the questions' scores;
    `folds` the means of random parts of them, where the table has folds.

    `difference` is to the baseline, over the `n_paired` questions that both have a score for, with the p-value of the
    paired randomisation test, which the interval agrees with (`paired_difference`); `p_adjusted` is Holm's, over the
    systems of this metric and data set. None for the baseline itself and if nothing is paired. `interval` is None if no
    question has a score.
    """

    metric: str
    interval: Interval | None
    n_failed: int
    n_undefined: int
    difference: Interval | None = None
    n_paired: int = 0
    p_value: float | None = None
    p_adjusted: float | None = None
    quartiles: tuple[float, float] | None = None
    folds: tuple[float, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether chance alone does not explain the difference: p is below .05, and the interval excludes 0."""
        return self.p_value is not None and self.p_value < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """`stages` are measured seconds; "total" is the whole question, if that was timed.

    `resources` are means over the questions that recorded them: "calls", "prompt_tokens",
    "completion_tokens", "cost" (if a model has a price), "cpu_percent" (of all processors during
    questions), "memory_mb" (after a question) and "gpu_mb" (the maximum so far). `refusals` are
    told where questions say which have no answer.
    """

    name: str
    n: int
    n_failed: int
    reasons: Mapping[str, int]
    cells: Mapping[str, Cell]
    stages: Mapping[str, Percentiles]
    resources: Mapping[str, float]
    refusals: RefusalRates | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The results of several systems on one set of questions.

    Attributes:
        header: what was run, on which questions.
        baseline: the system that the others are compared with.
        systems: the systems, each with its means, intervals and differences.
        missing: in an unfinished run, the number of questions left for each system.
        rows: each question with each system's answer and scores.
        decisions: for each metric, which system of each pair is better (`decide`). Empty unless the questions are a
            test set with two halves.

    >>> rows = [ResultRow("q1", "rag", metrics={"right": 1.0}), ResultRow("q2", "rag", metrics={"right": 0.0})]
    >>> summarise_run(RunHeader("mine", "questions", {}, {}, {}), rows).systems[0].cells["right"].interval.estimate
    0.5
    """

    header: RunHeader
    baseline: str
    systems: tuple[SystemSummary, ...]
    missing: Mapping[str, int]
    rows: tuple[ResultRow, ...]
    decisions: Mapping[str, tuple[Decision, ...]] = field(default_factory=dict)

    @property
    def table(self) -> Mapping[str, Any]:
        described: Mapping[str, Any] = self.header.extra.get("table", {})
        return described

    @property
    def metrics(self) -> list[str]:
        return list(self.table.get("metrics", ()))

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values, without the rows."""
        fields = dataclasses.asdict(dataclasses.replace(self, rows=(), decisions={}))
        del fields["rows"]
        fields["decisions"] = {metric: [each.to_dict() for each in own] for metric, own in self.decisions.items()}
        return fields


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table on all its data sets."""

    title: str
    kind: str
    runs: tuple[RunSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values, without the rows."""
        return {"title": self.title, "kind": self.kind, "runs": [run.to_dict() for run in self.runs]}


def find_runs(folder: Path) -> list[Path]:
    """The folder itself, or those in it that hold a run. Raises EvaluationError when there is none."""
    if (folder / HEADER_FILE).is_file():
        return [folder]
    runs = sorted(path.parent for path in folder.glob(f"*/{HEADER_FILE}"))
    if not runs:
        raise EvaluationError(f"{str(folder)!r} holds no run. Make one: kraq eval INDEX QUESTIONS --out {folder}")
    return runs


def summarise(folders: Iterable[Path], *, baseline: str | None = None, seed: int = 0) -> TableSummary:
    """Raises EvaluationError for a folder without a run, runs of different tables, or an unknown baseline."""
    runs = [summarise_run(*read_run(folder), baseline=baseline, seed=seed) for folder in folders]
    tables = {(run.header.name, run.table.get("title"), run.table.get("kind")) for run in runs}
    if len(tables) != 1:
        raise EvaluationError(
            f"These are runs of different tables: {', '.join(sorted(str(each[0]) for each in tables))}."
        )
    [(name, title, kind)] = tables
    return TableSummary(str(title or name), str(kind or ""), tuple(runs))


def require_rows(runs: Iterable[RunSummary]) -> None:
    """Raises EvaluationError if every row of a system failed: its question, or each score of its answer.

    A run is reported before it is asked about, so that its rows can be read.
    """
    for run in runs:
        for system in run.systems:
            rows = [row for row in run.rows if row.system == system.name]
            if not rows or not all(_has_failed(row) for row in rows):
                continue
            reason = next(iter(system.reasons)).rstrip(".")
            raise EvaluationError(
                f"Every row of {system.name!r} on {run.header.dataset} failed ({len(rows)} of {len(rows)}); most "
                f"often: {reason}. Fix that and run the same command with --retry-failed."
            )


def _has_failed(row: ResultRow) -> bool:
    return row.failure is not None or bool(row.failed_metrics and not row.metrics)


def summarise_run(
    header: RunHeader, rows: Sequence[ResultRow], *, baseline: str | None = None, seed: int = 0
) -> RunSummary:
    """Raises EvaluationError for a baseline that is no system, and a row without a score and without
    a reason."""
    described = header.extra.get("table", {})
    by_system = _rows_by_system(rows, described.get("systems", ()))
    baseline = _baseline(baseline, described.get("baseline", ""), list(by_system))

    metrics = described.get("metrics") or sorted({name for row in rows for name in row.metrics})
    cells: dict[str, dict[str, Cell]] = {name: {} for name in by_system}
    for metric in metrics:
        column = _column(by_system, metric, baseline, seed, described.get("folds", 0))
        for name, cell in column.items():
            cells[name][metric] = cell
    systems = tuple(_system(name, own, cells[name], seed) for name, own in by_system.items())

    n_asked = header.extra.get("asked") or 0
    missing = {}
    for name, own in by_system.items():
        if len(own) < n_asked:
            missing[name] = n_asked - len(own)
    decided = {metric: tuple(decisions(list(chain(*by_system.values())), metric, seed=seed)) for metric in metrics}
    decided = {metric: own for metric, own in decided.items() if own}
    return RunSummary(header, baseline, systems, missing, tuple(rows), decided)


def _rows_by_system(rows: Sequence[ResultRow], named: Iterable[str]) -> dict[str, list[ResultRow]]:
    """The rows of each system, those that the run named in that order, then the others; in the order of the questions'
    ids, whichever was answered first."""
    by_system: dict[str, list[ResultRow]] = {}
    for row in sorted(rows, key=lambda each: each.question_id):
        by_system.setdefault(row.system, []).append(row)
    order = dict.fromkeys([*(name for name in named if name in by_system), *by_system])
    return {name: by_system[name] for name in order}


def _baseline(named: str | None, described: str, systems: Sequence[str]) -> str:
    """The baseline that is asked for, else the run's own; "" if that was not yet asked."""
    chosen = named or described
    if chosen in systems:
        return chosen
    if systems and named is not None:
        there = ", ".join(systems)
        raise EvaluationError(f"The baseline {named!r} is no system of the run; there are: {there}.")
    return ""  # an unfinished run


def failed_rows(rows: Iterable[ResultRow], metric: str, below: float = 1.0) -> list[ResultRow]:
    """Return those without an answer, or whose metric is `below`: the worst first."""
    failed = [row for row in rows if row.failure is not None or row.metrics.get(metric, below) < below]
    return sorted(failed, key=lambda row: (row.metrics.get(metric, -1.0), row.question_id, row.system))


def scores_of(rows: Sequence[ResultRow], metric: str) -> dict[str, float]:
    """The scores by question id, of the questions that have one. Raises EvaluationError for a row
    with neither a score nor a reason."""
    for row in rows:
        if row.failure is None and metric not in {*row.metrics, *row.failed_metrics, *row.extra.get("undefined", ())}:
            raise EvaluationError(
                f"Question {row.question_id!r} has no {metric!r}; it has {', '.join(row.metrics) or 'no metrics'}."
            )
    return {row.question_id: row.metrics[metric] for row in rows if metric in row.metrics}


def _column(
    by_system: Mapping[str, list[ResultRow]], metric: str, baseline: str, seed: int, folds: int = 0
) -> dict[str, Cell]:
    scores = {name: scores_of(rows, metric) for name, rows in by_system.items()}
    of_baseline = scores.get(baseline, {})

    cells: dict[str, Cell] = {}
    p_values: dict[str, float] = {}
    for name, own in scores.items():
        cells[name] = _cell_of(metric, by_system[name], own, seed, folds)
        shared = sorted(own.keys() & of_baseline.keys())
        if name != baseline and shared:
            paired = paired_difference([own[id] for id in shared], [of_baseline[id] for id in shared], seed=seed)
            p_values[name] = paired.test.p_value
            cells[name] = dataclasses.replace(cells[name], difference=paired.interval, n_paired=len(shared))

    for name, p_adjusted in holm(p_values).items():
        cells[name] = dataclasses.replace(cells[name], p_value=p_values[name], p_adjusted=p_adjusted)
    return cells


def _cell_of(metric: str, rows: Sequence[ResultRow], scores: Mapping[str, float], seed: int, folds: int) -> Cell:
    """The mean of a system's scores, with its interval; without one where no question has a score."""
    n_undefined = sum(metric in row.extra.get("undefined", ()) for row in rows)
    n_missing = len(rows) - len(scores) - n_undefined
    if not scores:
        return Cell(metric, None, n_missing, n_undefined)

    values = list(scores.values())
    first, third = np.percentile(values, [25, 75])
    return Cell(
        metric,
        bootstrap_mean(values, seed=seed),
        n_missing,
        n_undefined,
        quartiles=(float(first), float(third)),
        folds=fold_means(scores, folds, seed) if folds else (),
    )


def fold_means(scores: Mapping[str, float], folds: int, seed: int) -> tuple[float, ...]:
    """Means of parts of nearly equal size, which the seed draws from the questions (K2RAG paper, Algorithm 3).

    >>> fold_means({"q1": 1.0, "q2": 1.0, "q3": 1.0}, 2, seed=0)
    (1.0, 1.0)
    """
    ids = sorted(scores)
    random.Random(seed).shuffle(ids)
    parts = [ids[number::folds] for number in range(folds)]
    return tuple(math.fsum(scores[id] for id in part) / len(part) for part in parts if part)


def _system(name: str, rows: Sequence[ResultRow], cells: Mapping[str, Cell], seed: int) -> SystemSummary:
    reasons = Counter(
        reason for row in rows for reason in (row.failure, *row.failed_metrics.values()) if reason is not None
    )
    return SystemSummary(
        name, len(rows), sum(row.failure is not None for row in rows), dict(reasons.most_common()), cells,
        stage_times([row.timings for row in rows if row.timings]),
        _resources([row.extra["usage"] for row in rows if "usage" in row.extra]),
        refusal_rates(rows, seed=seed),
    )  # fmt: skip


def _resources(usage: Sequence[Mapping[str, float]]) -> dict[str, float]:
    means = {
        name: math.fsum(each.get(name, 0) for each in usage) / len(usage)
        for name in dict.fromkeys(name for each in usage for name in each)
    }
    if "gpu_mb" in means:
        means["gpu_mb"] = max(each.get("gpu_mb", 0.0) for each in usage)
    clock, computing = means.pop("clock_s", 0.0), means.pop("cpu_s", 0.0)
    if clock:
        means["cpu_percent"] = 100 * computing / clock / (os.cpu_count() or 1)
    return means
