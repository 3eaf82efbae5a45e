"""Judges a run for a build server: means that must not fall below a number, and a run that must not be beaten by it.

checks = [*under_checks(evaluation.summary, {"recall@10": 0.9}), *worse_checks(Path("runs/base"), Path("runs/now"))]
failed = [check.text for check in checks if not check.passed]
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval.halves import Decision
from kraq_dspy.eval.metrics.for_dspy import RANKINGS
from kraq_dspy.eval.reports.comparing import compare_runs
from kraq_dspy.eval.reports.summary import Cell, RunSummary, summarise_run
from kraq_dspy.eval.scoring import is_built_in
from kraq_dspy.eval.statistics import Interval

FIRST_OF = ("recall", "all_supporting", "hits", "ndcg", "mrr", "answer_found", "token_f1")
"""By which metric a run is held against another if none is named: the first of these kinds that both have."""


@dataclass(frozen=True, slots=True)
class QualityCheck:
    """One thing that was asked of a run. `text` says it with its figures.

    >>> QualityCheck("recall@10", "dense", True, "recall@10 of dense is 0.950, at least 0.9").passed
    True
    """

    metric: str
    system: str
    passed: bool
    text: str


def read_thresholds(words: Iterable[str]) -> dict[str, float]:
    """Least means by metric, or by metric and type of question: "recall@10[fact]".

    Raises ConfigError for what is no METRIC=NUMBER, and for a number that no mean can reach.

    >>> read_thresholds(["recall@10=.9", "token_f1=0.4"])
    {'recall@10': 0.9, 'token_f1': 0.4}
    """
    thresholds = {}
    for word in words:
        metric, _, number = word.rpartition("=")
        try:
            thresholds[metric.strip()] = float(number)
        except ValueError:
            metric = ""
        if not metric.strip():
            raise ConfigError(f"--fail-under is {word!r}; expected METRIC=NUMBER, such as recall@10=.9.")

    require_reachable(thresholds)
    return thresholds


def metric_judged(name: str) -> str:
    """The metric of a threshold.

    >>> metric_judged("recall@10[fact]"), metric_judged("recall@10")
    ('recall@10', 'recall@10')
    """
    return _metric_and_type(name)[0]


def _metric_and_type(name: str) -> tuple[str, str]:
    """The metric, and the type of question that the threshold is for; "" for all questions."""
    metric, bracket, rest = name.partition("[")
    return (metric, rest[:-1]) if bracket and rest.endswith("]") else (name, "")


def require_reachable(thresholds: Mapping[str, float]) -> None:
    """Raise ConfigError for a threshold that decides nothing: every mean is below it, or none is.

    kraq's metrics are shares. A metric of one's own may have any range, so there any number will do.
    """
    for metric, least in thresholds.items():
        if not math.isfinite(least):
            raise ConfigError(f"The least mean of {metric!r} is {least}; expected a number, such as .9.")
        if is_built_in(metric_judged(metric)) and not 0 <= least <= 1:
            raise ConfigError(
                f"The least mean of {metric!r} is {least:g}, but {metric} lies between 0 and 1; 90 % is .9."
            )


def require_other_folder(base: Path | None, now: Path) -> None:
    """Raise ConfigError for a run that is written to the folder of the run that it is compared with."""
    if base is not None and base.resolve() == now.resolve():
        raise ConfigError(
            f"{str(now)!r} is the run to compare with, and would be compared with itself; write this run to another "
            "folder (--out)."
        )


def under_checks(run: RunSummary, thresholds: Mapping[str, float]) -> list[QualityCheck]:
    """Whether the mean of each metric is at least its number, for every system. A question that failed counts as 0.

    Raises EvaluationError for a metric that the run does not have.
    """
    checks = []
    for name, least in thresholds.items():
        metric, kind = _metric_and_type(name)
        judged = of_type(run, kind) if kind else run
        for system in judged.systems:
            cell = system.cells.get(metric)
            if cell is None or (cell.interval is None and not cell.n_failed):
                raise EvaluationError(_without_score(metric, system.name, run.metrics))
            mean, failed = _mean(cell), f" ({counted(cell.n_failed, 'question')} failed)" if cell.n_failed else ""
            passed = mean >= least
            words = f"{'at least' if passed else 'below'} {least:g}"
            of_kind = f" in {counted(system.n, 'question')} of the type {kind}" if kind else ""
            text = f"{metric} of {system.name} is {mean:.3f}{of_kind}{failed}, {words}"
            checks.append(QualityCheck(metric, system.name, passed, text))
    return checks


def of_type(run: RunSummary, kind: str) -> RunSummary:
    """The run with the questions of one type alone. Raises EvaluationError for a type that no question has."""
    rows = [row for row in run.rows if str(row.extra.get("type") or "") == kind]
    if not rows:
        kinds = sorted({str(row.extra.get("type") or "") for row in run.rows} - {""})
        raise EvaluationError(
            f"No question has the type {kind!r}; there are: {', '.join(kinds) or 'none, since no question has a type'}."
        )
    asked = len({row.question_id for row in rows})
    header = dataclasses.replace(run.header, extra={**run.header.extra, "asked": asked})
    return summarise_run(header, rows)


def _without_score(metric: str, system: str, metrics: Sequence[str]) -> str:
    if metric not in metrics:
        return f"{system!r} has no score of {metric!r} to be judged by; it has: {', '.join(metrics)}."
    lacks = "names a document or a passage as evidence" if metric.partition("@")[0] in RANKINGS else "has what it takes"
    return (
        f"{metric!r} has no value to be judged by: it was measured, but no question of the run {lacks}. Give questions "
        "that do (kraq eval --help names the columns), or leave this threshold out."
    )


def worse_checks(base: Path, now: Path, *, metrics: Sequence[str] | None = None, seed: int = 0) -> list[QualityCheck]:
    """Whether the base run was better, for every system of both.

    It was if the paired randomisation test has a p below .05 (`paired_difference`), as in every table; if both runs
    have the two halves of a test set, if these decide so (`kraq_dspy.eval.halves.decide`). Only questions
    of both runs count, by id or by text (`compare_runs`), so a test set may grow. Without `metrics`, one decides: the
    first of `FIRST_OF` that both runs have. A system of which more questions fail than then is worse, whatever the
    others score.

    Raises EvaluationError if the runs have nothing in common.
    """
    checks = []
    for run in compare_runs(base, now, seed=seed):
        before, after = run.systems
        name = after.name.removesuffix(", second")
        for metric in judged_metrics(run.metrics, metrics):
            difference = after.cells[metric].difference
            if difference is None:
                continue
            if decided := run.decisions.get(metric):
                checks.append(_by_halves(metric, name, decided[0], _unpaired(run)))
                continue
            cell = after.cells[metric]
            passed = not (cell.is_decided and difference.estimate < 0)
            words = "no worse than" if passed else "worse than"
            text = f"{metric} of {name} is {words} before: {_shown(difference)}{_unpaired(run)}"
            checks.append(QualityCheck(metric, name, passed, text))

        if after.n_failed > before.n_failed:
            text = f"{counted(after.n_failed, 'question')} of {name} failed, {before.n_failed} before"
            checks.append(QualityCheck("failed", name, False, text))

    if not checks:
        raise EvaluationError(f"{str(base)!r} and {str(now)!r} share no metric of: {', '.join(metrics or FIRST_OF)}.")
    return checks


def _by_halves(metric: str, name: str, before_and_now: Decision, unpaired: str) -> QualityCheck:
    """The check of a system by the decision on before - now."""
    passed = before_and_now.verdict <= 0
    words = "no worse than" if passed else "worse than"
    by_half = []
    for half, difference in before_and_now.differences.items():
        by_half.append(f"{half} {_shown(_turned(difference.interval))}")
    by = before_and_now.reason.removeprefix("open: ")
    text = f"{metric} of {name} is {words} before ({by}): {'; '.join(by_half)}"
    return QualityCheck(metric, name, passed, text + unpaired)


def _turned(difference: Interval) -> Interval:
    """What the second has more than the first."""
    return dataclasses.replace(difference, estimate=-difference.estimate, low=-difference.high, high=-difference.low)


def _shown(difference: Interval) -> str:
    return f"{difference.shown(signed=True)}, {counted(difference.n, 'question')}"


def _unpaired(run: RunSummary) -> str:
    """How many questions only one of the two runs has; "" if none."""
    only_in = run.table["only_in"]
    counts = [(len(only_in[side]), words) for side, words in (("first", "before"), ("second", "now"))]
    told = [f"{count} only {words}" for count, words in counts if count]
    return f" ({', '.join(told)})" if told else ""


def _mean(cell: Cell) -> float:
    if cell.interval is None:
        return 0.0
    return cell.interval.estimate * cell.interval.n / (cell.interval.n + cell.n_failed)


def judged_metrics(shared: Sequence[str], metrics: Sequence[str] | None) -> list[str]:
    """Return those of the metrics that both runs have; without any named, the first of `FIRST_OF`,
    or the first at all."""
    if metrics is not None:
        return [metric for metric in metrics if metric in shared]
    by_kind = {metric.partition("@")[0]: metric for metric in reversed(shared)}
    preferred = [by_kind[kind] for kind in FIRST_OF if kind in by_kind]
    return (preferred or list(shared))[:1]
