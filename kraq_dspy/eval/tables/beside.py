"""Compares two runs on the same questions: what the second has more, paired, and which questions changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.rows import ResultRow, metric_column, read_run
from kraq_dspy.eval.statistics import Comparison, compare, holm
from kraq_dspy.eval.tables.summary import defined_rows, find_runs


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
