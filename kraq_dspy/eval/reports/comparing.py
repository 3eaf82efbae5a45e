"""Sets two runs side by side: what the second has more than the first, question by question."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.reports.summary import RunSummary, find_runs, summarise_run
from kraq_dspy.eval.rows import ResultRow, RunHeader, read_run

SHOWN = 3
"""Names of each side that an error shows."""

Rows = Sequence[ResultRow]


def compare_runs(first: Path, second: Path, *, seed: int = 0) -> list[RunSummary]:
    """Compare each system of the second run with that of the first: a summary for each, whose baseline is the first's.

    Systems of the same name are compared, or the only one of each run. Their questions are paired by text, without
    regard to case; by id, if rows do not tell their questions. `table["only_in"]` of a summary lists the questions that
    only the "first" or the "second" run has. Raises EvaluationError for a folder without a
    run, and for two that share no data set, system, metric or question: it names what each side has.
    """
    rows_before = {header.dataset: rows for header, rows in map(read_run, find_runs(first))}
    rows_after = {header.dataset: rows for header, rows in map(read_run, find_runs(second))}

    comparisons = []
    for dataset, its_other in _paired(rows_before, rows_after):  # one file may have two names
        before, after = rows_before[dataset], rows_after[its_other]
        for system, other in _paired([row.system for row in before], [row.system for row in after]):
            own = [row for row in before if row.system == system]
            comparison = _comparison(dataset, own, [row for row in after if row.system == other], seed)
            if comparison is not None:
                comparisons.append(comparison)
    if not comparisons:
        raise EvaluationError(
            f"The two runs have nothing in common to compare. {first}: {_held(rows_before)}. "
            f"{second}: {_held(rows_after)}. Runs are compared over the same questions, by a metric that both have."
        )
    return comparisons


def _paired(before: Iterable[str], after: Iterable[str]) -> list[tuple[str, str]]:
    """The names that both runs have, or the only one of each run."""
    first, second = _unique(before), _unique(after)
    shared = [(name, name) for name in first if name in second]
    return shared or (list(zip(first, second, strict=True)) if len(first) == len(second) == 1 else [])


def _comparison(dataset: str, before: Rows, after: Rows, seed: int) -> RunSummary | None:
    """The second's difference from the first; None if no question has a score by one metric on both sides."""
    labels = f"{before[0].system}, first", f"{after[0].system}, second"
    metrics_after = {metric for row in after for metric in row.metrics}
    metrics = [metric for metric in _unique(_metrics_of(before)) if metric in metrics_after]
    if not metrics:
        return None

    before, after = with_shared_ids(before, after)
    rows = [dataclasses.replace(row, system=labels[0]) for row in before]
    rows += [dataclasses.replace(row, system=labels[1]) for row in after]
    only_in = {"first": _lacking(before, after), "second": _lacking(after, before)}
    table = {"baseline": labels[0], "metrics": metrics, "only_in": only_in}
    header = RunHeader("comparison", dataset, {}, {}, {}, extra={"table": table})
    summary = summarise_run(header, rows, seed=seed)

    has_pairs = any(cell.difference for cell in summary.systems[-1].cells.values())
    return summary if has_pairs else None


def with_shared_ids(before: Rows, after: Rows) -> tuple[Rows, Rows]:
    """The rows with ids that are the same in both runs exactly if the question is: its text, where all rows tell it.

    >>> first = [ResultRow("q1", "dense", extra={"question": "Who owns the mill?"})]
    >>> second = [ResultRow("q2", "dense", extra={"question": "who owns the mill"})]
    >>> second += [ResultRow("q1", "dense", extra={"question": "When does the inn open?"})]
    >>> [[row.question_id for row in rows] for rows in with_shared_ids(first, second)]
    [['who owns the mill, 1'], ['who owns the mill, 1', 'when does the inn open, 1']]
    """
    if all(map(_text_of, (*before, *after))):
        return _by_text(before), _by_text(after)
    return before, after


def _by_text(rows: Rows) -> list[ResultRow]:
    """The rows with their question's text as id, and how often it had occurred."""
    seen: Counter[str] = Counter()
    named = []
    for row in rows:
        text = _text_of(row)
        seen[text] += 1
        named.append(dataclasses.replace(row, question_id=f"{text}, {seen[text]}"))
    return named


def _text_of(row: ResultRow) -> str:
    """The row's question without regard to case, spaces and the mark at its end; "" if the row does not tell it."""
    question = " ".join(str(row.extra.get("question", "")).split()).casefold()
    return question.rstrip("?.! ") or question


def _lacking(rows: Rows, others: Rows) -> list[str]:
    """The questions that have no row among the others, in order."""
    known = {row.question_id for row in others}
    return [str(row.extra.get("question", row.question_id)) for row in rows if row.question_id not in known]


def _metrics_of(rows: Rows) -> list[str]:
    return [metric for row in rows for metric in row.metrics]


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _held(runs: Mapping[str, Rows]) -> str:
    """Return what a run has, in words: data sets, systems, metrics, and how many questions."""
    rows = [row for each in runs.values() for row in each]
    questions = len({row.question_id for row in rows})
    parts = {
        "data": list(runs),
        "systems": _unique(row.system for row in rows),
        "metrics": _unique(_metrics_of(rows)),
    }
    words = [f"{name} {_listed(names)}" for name, names in parts.items()]
    return f"{'; '.join(words)}; {counted(questions, 'question')}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
