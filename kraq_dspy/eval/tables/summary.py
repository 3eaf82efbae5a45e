"""Makes figures of rows: means with intervals, differences with paired tests, failures; sets two runs side by side."""

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.latency import TOTAL, Percentiles, parallel_seconds, stage_times, wall_time
from kraq_dspy.eval.rows import HEADER_FILE, ResultRow, RunHeader, metric_column, read_run
from kraq_dspy.eval.statistics import (
    Comparison,
    Interval,
    bootstrap_difference,
    bootstrap_mean,
    compare,
    holm,
    permutation_test,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one system. `n_failed` have no score for a reason that their rows tell; `n_undefined` cannot have
    one (no gold answer, no known evidence).

    `quartiles` are the first and the third of the questions' scores.

    `difference` is to the baseline, over the `n_paired` questions that both have a score for, with the p-value of the
    paired randomisation test; `p_adjusted` is Holm's, over the systems of this metric and data set. None for the
    baseline itself and where nothing is paired. `interval` is None where no question has a score.
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


@dataclass(frozen=True, slots=True)
class Resources:
    """Means over the questions that say what they took: memory is what was held after one, in megabytes. On a GPU it is
    the most that was held so far.

    `cost` is None where no model has a price, `gpu_mb` where the process had no accelerator. `cpu_percent` is the share
    of all processors' time that this process took while questions were asked.
    """

    calls: float
    prompt_tokens: float
    completion_tokens: float
    cost: float | None
    cpu_percent: float | None
    memory_mb: float | None
    gpu_mb: float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """`total` and `stages` are measured; `modelled` are the papers' estimated seconds, if all branches run at once."""

    total: Percentiles | None
    stages: Mapping[str, Percentiles]
    modelled: float | None


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """`resources` is None where no row says what it took."""

    name: str
    settings: Mapping[str, Any]
    n: int
    n_failed: int
    reasons: Mapping[str, int]
    cells: Mapping[str, Cell]
    latency: Latency | None
    resources: Resources | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One table on one data set. `missing` counts the questions that a system was not asked yet (an unfinished run)."""

    header: RunHeader
    baseline: str
    systems: tuple[SystemSummary, ...]
    missing: Mapping[str, int]
    rows: tuple[ResultRow, ...]

    @property
    def table(self) -> Mapping[str, Any]:
        described: Mapping[str, Any] = self.header.extra.get("table", {})
        return described

    @property
    def metrics(self) -> list[str]:
        return list(self.table.get("metrics", ()))


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table on all its data sets."""

    title: str
    kind: str
    runs: tuple[RunSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the rows."""
        runs = []
        for run in self.runs:
            fields = dataclasses.asdict(dataclasses.replace(run, rows=()))
            del fields["rows"]
            runs.append(fields)
        return {"title": self.title, "kind": self.kind, "runs": runs}


def find_runs(folder: Path) -> list[Path]:
    """The folder itself, or those in it that hold a run. Raises EvaluationError when there is none."""
    if (folder / HEADER_FILE).is_file():
        return [folder]
    runs = sorted(path.parent for path in folder.glob(f"*/{HEADER_FILE}"))
    if not runs:
        raise EvaluationError(f"{str(folder)!r} holds no run. Make one: kraq eval combined --out {folder}")
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


def summarise_run(
    header: RunHeader, rows: Sequence[ResultRow], *, baseline: str | None = None, seed: int = 0
) -> RunSummary:
    described = header.extra.get("table", {})
    by_system: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    order = [name for name in described.get("systems", ()) if name in by_system]
    order += [name for name in by_system if name not in order]
    chosen = baseline or described.get("baseline", "")
    if chosen not in order:
        if order and baseline is not None:
            raise EvaluationError(f"The baseline {baseline!r} is no system of the run; there are: {', '.join(order)}.")
        chosen = ""  # an unfinished run: not yet asked
    metrics = described.get("metrics") or sorted({name for row in rows for name in row.metrics})
    cells = {name: {metric: _cell(by_system[name], metric, seed) for metric in metrics} for name in order}
    if chosen:
        for metric in metrics:
            _compare(cells, by_system, metric, chosen, seed)
    systems = tuple(
        _system(name, described.get("systems", {}).get(name, {}), by_system[name], cells[name]) for name in order
    )
    n_asked = header.extra.get("asked")
    missing = {name: n_asked - len(by_system[name]) for name in order if n_asked and n_asked > len(by_system[name])}
    return RunSummary(header, chosen, systems, missing, tuple(rows))


def defined_rows(rows: Iterable[ResultRow], metric: str) -> list[ResultRow]:
    """Without the questions that cannot have a score."""
    return [row for row in rows if metric not in row.extra.get("undefined", ())]


def _cell(rows: Sequence[ResultRow], metric: str, seed: int) -> Cell:
    defined = defined_rows(rows, metric)
    column = metric_column(defined, metric)
    undefined = len(rows) - len(defined)
    if not column.scores:
        return Cell(metric, None, len(column.failures), undefined)
    scores = list(column.scores.values())
    first, third = np.percentile(scores, [25, 75])
    return Cell(
        metric, bootstrap_mean(scores, seed=seed), len(column.failures), undefined,
        quartiles=(float(first), float(third)),
    )  # fmt: skip


def _compare(
    cells: dict[str, dict[str, Cell]], by_system: Mapping[str, list[ResultRow]], metric: str, baseline: str, seed: int
) -> None:
    against = metric_column(defined_rows(by_system[baseline], metric), metric).scores
    for name in cells:
        if name == baseline:
            continue
        own = metric_column(defined_rows(by_system[name], metric), metric).scores
        shared = sorted(own.keys() & against.keys())
        if not shared:
            continue
        pair = [own[id] for id in shared], [against[id] for id in shared]
        cells[name][metric] = dataclasses.replace(
            cells[name][metric],
            difference=bootstrap_difference(*pair, seed=seed),
            n_paired=len(shared),
            p_value=permutation_test(*pair, seed=seed).p_value,
        )
    tested = {name: cell.p_value for name in cells if (cell := cells[name][metric]).p_value is not None}
    for name, p_adjusted in holm({name: p for name, p in tested.items() if p is not None}).items():
        cells[name][metric] = dataclasses.replace(cells[name][metric], p_adjusted=p_adjusted)


def _system(
    name: str, settings: Mapping[str, Any], rows: Sequence[ResultRow], cells: Mapping[str, Cell]
) -> SystemSummary:
    failed = [row for row in rows if row.failure is not None]
    reasons: dict[str, int] = {}
    for row in rows:
        for reason in (row.failure, *row.failed_metrics.values()):
            if reason is not None:
                reasons[reason] = reasons.get(reason, 0) + 1
    return SystemSummary(
        name, settings, len(rows), len(failed), dict(sorted(reasons.items(), key=lambda item: -item[1])), cells,
        _latency([row for row in rows if row.timings]),
        _resources([row.extra["usage"] for row in rows if "usage" in row.extra]),
    )  # fmt: skip


def _resources(usage: Sequence[Mapping[str, float]]) -> Resources | None:
    if not usage:
        return None

    def mean(name: str) -> float:
        return math.fsum(each.get(name, 0) for each in usage) / len(usage)

    def most(name: str) -> float | None:
        return max((each[name] for each in usage if name in each), default=None)

    cost = mean("cost") if any("cost" in each for each in usage) else None
    return Resources(
        mean("calls"), mean("prompt_tokens"), mean("completion_tokens"), cost,
        100 * mean("cpu_s") / mean("clock_s") / (os.cpu_count() or 1) if mean("clock_s") else None,
        mean("memory_mb") if any("memory_mb" in each for each in usage) else None, most("gpu_mb"),
    )  # fmt: skip


def _latency(rows: Sequence[ResultRow]) -> Latency | None:
    timings = [row.timings for row in rows]
    stages = {stage for timing in timings for stage in timing if stage != TOTAL}
    if not stages:
        return None
    total = wall_time(timings) if all(TOTAL in timing for timing in timings) else None
    by_stage = stage_times(timings)
    return Latency(total, by_stage, parallel_seconds(by_stage) if total is not None else None)


@dataclass(frozen=True, slots=True)
class MetricBeside:
    """A metric of both runs over the `n` questions that both have a score for; the difference is second minus first.

    `p_adjusted` is Holm's over the metrics of the pair of systems.
    """

    metric: str
    n: int
    comparison: Comparison
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class RunsBeside:
    """A system of the first run beside one of the second, on one data set.

    `changed` are the questions whose score by the first metric differs, with the rows of both, what fell most first.
    """

    dataset: str
    first: str
    second: str
    metrics: tuple[MetricBeside, ...]
    changed: tuple[tuple[ResultRow, ResultRow], ...]


def compare_runs(first: Path, second: Path, *, seed: int = 0) -> list[RunsBeside]:
    """Systems are compared by name, or one with one where each run has one only.

    Raises EvaluationError for a folder without a run, and where the two share no data set, system, metric or question.
    """
    before = {header.dataset: rows for header, rows in map(read_run, find_runs(first))}
    after = {header.dataset: rows for header, rows in map(read_run, find_runs(second))}
    pairs = [(before[name], after[name], name) for name in before if name in after]
    if not pairs and len(before) == len(after) == 1:  # one file of questions under two names
        [(name, rows)], [others] = before.items(), after.values()
        pairs = [(rows, others, name)]
    compared = []
    for rows, others, dataset in pairs:
        names, other_names = _systems(rows), _systems(others)
        shared = [(name, name) for name in names if name in other_names]
        if not shared and len(names) == len(other_names) == 1:
            shared = [(names[0], other_names[0])]
        for name, other in shared:
            own = [row for row in rows if row.system == name], [row for row in others if row.system == other]
            if (beside := _beside(dataset, name, other, *own, seed)) is not None:
                compared.append(beside)
    if not compared:
        raise EvaluationError(
            f"{str(first)!r} and {str(second)!r} have no data set, system, metric and question in common."
        )
    return compared


def _systems(rows: Sequence[ResultRow]) -> list[str]:
    return list(dict.fromkeys(row.system for row in rows))


def _beside(
    dataset: str, name: str, other: str, rows: Sequence[ResultRow], others: Sequence[ResultRow], seed: int
) -> RunsBeside | None:
    metrics = [metric for metric in _metrics(rows) if metric in _metrics(others)]
    compared: list[tuple[str, int, Comparison]] = []
    for metric in metrics:
        left = metric_column(defined_rows(rows, metric), metric).scores
        right = metric_column(defined_rows(others, metric), metric).scores
        shared = sorted(left.keys() & right.keys())
        if shared:
            scores = [right[each] for each in shared], [left[each] for each in shared]
            compared.append((metric, len(shared), compare(*scores, seed=seed)))
    if not compared:
        return None
    adjusted = holm({metric: comparison.test.p_value for metric, _, comparison in compared})
    by_id = {row.question_id: row for row in others}
    main = compared[0][0]
    changed = [
        (row, by_id[row.question_id])
        for row in rows
        if row.question_id in by_id and row.metrics.get(main) != by_id[row.question_id].metrics.get(main)
    ]
    changed.sort(key=lambda pair: pair[1].metrics.get(main, 0.0) - pair[0].metrics.get(main, 0.0))
    return RunsBeside(
        dataset,
        name,
        other,
        tuple(MetricBeside(metric, n, comparison, adjusted[metric]) for metric, n, comparison in compared),
        tuple(changed),
    )


def _metrics(rows: Sequence[ResultRow]) -> list[str]:
    return list(dict.fromkeys(metric for row in rows for metric in row.metrics))
