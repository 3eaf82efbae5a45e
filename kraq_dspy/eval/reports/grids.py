"""Puts the figures of a summary into grids of text, which terminal and page only draw."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import counted
from kraq_dspy.eval.halves import HALVES, HUMAN, SURE, Decision, bias_note
from kraq_dspy.eval.latency import PAPER_STAGES, TOTAL, parallel_seconds
from kraq_dspy.eval.reports.summary import Cell, RunSummary, TableSummary, failed_rows
from kraq_dspy.eval.rows import ResultRow, clipped
from kraq_dspy.eval.statistics import SIGNIFICANT, bootstrap_mean, number

CHANGED = 5  # questions shown that fell, and as many that rose
UNPAIRED = 20  # questions shown that one of two runs has alone
ABOUT = ("program", "retriever", "model", "encoder", "passages")
WORDS = frozenset(("reason", "question", "gold", "answer", "evidence", "before", "after"))
"""Columns of running text."""
_SEVERAL = 2
_WIDE = 6  # more metrics than this get a grid for each kind


class Strong(str):
    """A cell that stands out."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Headings and rows of text, each row with its name first."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def grids(run: RunSummary, *, brief: bool = False) -> list[Grid]:
    """Return what the systems are, scores, differences, failures and, unless `brief`, latency and
    cost: those there are."""
    parts = list(_made_of(run))
    are_many = len(run.metrics) > _WIDE
    groups: dict[str, list[str]] = {}
    for metric in run.metrics:
        family = metric.partition("@")[0] if are_many else ""
        groups.setdefault(family, []).append(metric)

    for title, metrics in groups.items():
        parts.append(_scores(run, title, metrics))
        undecided = [metric for metric in metrics if metric not in run.decisions]
        if undecided and run.baseline and len(run.systems) > 1:
            parts.append(_differences(run, title, undecided))
    made_half = run.header.extra.get("made_half", {})
    parts += [decision_grid(metric, own, made_half) for metric, own in run.decisions.items()]
    parts += [*_by_group(run, "half"), *_by_group(run, "type"), *_refusals(run)]
    if not brief:
        parts += [*_folds(run), *_latency(run), *_resources(run)]

    reasons = []
    for system in run.systems:
        for reason, n in list(system.reasons.items())[:10]:
            reasons.append((system.name, str(n), reason))
    if reasons:
        note = "Counted, and left out of the means; --retry-failed asks these questions again."
        parts.append(Grid("What failed", ("system", "questions", "reason"), tuple(reasons), note=note))
    return parts


def failed_questions(run: RunSummary, most: int) -> Grid | None:
    """The questions that each system did worst by the first metric, or failed, with what it read from; the worst first.

    None if every question is right, or none was answered.
    """
    metric = next(iter(run.metrics), "")
    failed = failed_rows(run.rows, metric)
    if not any(row.answer or row.failure or row.extra.get("evidence") for row in failed):
        return None
    rows = tuple(
        (row.system, number(row.metrics[metric]) if metric in row.metrics else "failed", *_asked(row),
         row.failure or row.answer, " | ".join(row.extra.get("evidence", ())))
        for row in failed[:most]
    )  # fmt: skip
    headings = ("system", metric, "question", "gold", "answer", "evidence")
    note = (
        f"{len(failed)} of {counted(len(run.rows), 'row')} are below 1 in {metric}; shown are the worst, {len(rows)}."
    )
    return Grid("Lowest scores", headings, rows, note=note)


def changed_questions(run: RunSummary) -> Grid | None:
    """Show, of two runs side by side, the questions whose score by the first metric fell or rose
    most."""
    metric = run.metrics[0]
    after = {row.question_id: row for row in run.rows if row.system != run.baseline}
    changed: list[tuple[ResultRow, ResultRow]] = []
    for row in run.rows:
        if row.system != run.baseline or row.question_id not in after:
            continue
        other = after[row.question_id]
        if row.metrics.get(metric) != other.metrics.get(metric):
            changed.append((row, other))
    if not changed:
        return None

    changed.sort(key=lambda pair: pair[1].metrics.get(metric, 0.0) - pair[0].metrics.get(metric, 0.0))
    ends = [*changed[:CHANGED], *changed[max(CHANGED, len(changed) - CHANGED) :]]

    def scored(row: ResultRow) -> str:
        score = number(row.metrics[metric]) if metric in row.metrics else "failed"
        return f"{score} {clipped(row.failure or row.answer)}"

    rows = tuple((*_asked(row), scored(row), scored(other)) for row, other in ends)
    note = f"{metric} is another for {counted(len(changed), 'question')}; shown are those that fell and rose most."
    return Grid("Questions that changed", ("question", "gold", "before", "after"), rows, note=note)


def unpaired_questions(run: RunSummary) -> Grid | None:
    """List, of two runs side by side, the questions that only one of them has; None if both have the same."""
    only_in = run.table["only_in"]
    lacking = [(question, side) for side, questions in only_in.items() for question in questions]
    if not lacking:
        return None
    verb = "is" if len(lacking) == 1 else "are"
    note = f"{counted(len(lacking), 'question')} {verb} compared with none; shown are at most {UNPAIRED}."
    return Grid("Questions of one run alone", ("question", "run"), tuple(lacking[:UNPAIRED]), note=note)


def setup_lines(summary: TableSummary) -> dict[str, str]:
    """Tell how far the runs of a paper's table are the paper's: what is set as there, what stands
    in, what is otherwise."""
    if not summary.runs or not summary.runs[0].table.get("setup"):
        return {}
    setup: dict[str, str] | None = summary.runs[0].header.extra.get("paper")
    return setup or {"as in the paper": "its systems alone; settings and prompts are this library's (--paper sets its)"}


def facts(run: RunSummary) -> dict[str, str]:
    """Return what made the figures, in words."""
    header, extra = run.header, run.header.extra
    n_asked = extra.get("asked", len(run.rows))
    n_not_asked = extra.get("not_asked", 0)

    roles_of_model: dict[str, list[str]] = {}
    for role, name in header.models.items():
        roles_of_model.setdefault(name, []).append(role)

    generated = []
    for name, n_questions in extra.get("questions", {}).items():
        n_of_templates = extra.get("templates", {}).get(name)
        of_templates = f" ({n_of_templates:,} of templates)" if n_of_templates else ""
        generated.append(f"{name} {n_questions:,}{of_templates}")

    lines = {
        "questions": f"{n_asked} of {n_asked + n_not_asked}" if n_not_asked else str(n_asked),
        "documents": f"{extra['documents']:,}" if "documents" in extra else "",
        "evidence": f"{counted(extra['sample_tokens'], 'token')}" if extra.get("sample_tokens") else "",
        "generated questions": ", ".join(generated),
        "data": extra.get("data", ""),
        "models": "; ".join(f"{name} ({', '.join(roles)})" for name, roles in roles_of_model.items()),
        "seeds": ", ".join(f"{name} {seed}" for name, seed in header.seeds.items()),
        "concurrency": str(extra.get("in_flight", "")),
        "index": header.index_fingerprint,
        "library": f"kraq-dspy {header.library_version}",
        **header.made_with,
        "begun": header.created_at[:19].replace("T", " "),
        "notes": " ".join(extra.get("notes", ())),
        "unfinished": ", ".join(f"{name}: {counted(count, 'question')} missing" for name, count in run.missing.items()),
    }
    return {name: text for name, text in lines.items() if text}


def seconds(value: float) -> str:
    """A time in the unit in which it reads well.

    >>> seconds(1), seconds(0.01), seconds(0.0004)
    ('1.00 s', '10 ms', '0.4 ms')
    """
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"


def _asked(row: ResultRow) -> tuple[str, str]:
    return str(row.extra.get("question", row.question_id)), "; ".join(row.extra.get("gold", ()))


def _made_of(run: RunSummary) -> Iterator[Grid]:
    """Yield what each system is: program, retriever, model, encoder, passages."""
    described = run.table.get("systems", {})
    about = {system.name: described.get(system.name, {}).get("about", {}) for system in run.systems}
    columns = [name for name in ABOUT if any(name in each for each in about.values())]
    if columns:
        rows = tuple((system, *(str(each.get(name, "")) for name in columns)) for system, each in about.items())
        yield Grid("Systems", ("system", *columns), rows)


def _scores(run: RunSummary, title: str, metrics: Sequence[str]) -> Grid:
    """Each metric's highest mean stands out, unless all are equal."""
    note = "Mean with 95 % interval (BCa bootstrap over questions; Wilson's if all scored the same)."
    highest: dict[str, float] = {}
    for metric in metrics:
        cells = [system.cells[metric] for system in run.systems]
        means = {cell.interval.estimate for cell in cells if cell.interval}
        if len(means) > 1:
            highest[metric] = max(means)
        n_undefined = cells[0].n_undefined if cells else 0
        if cells and 0 < n_undefined < run.systems[0].n:
            have = "question has" if n_undefined == 1 else "questions have"
            note += f" {metric}: {n_undefined} {have} no gold data for it."

    rows = []
    for system in run.systems:
        scores = []
        for metric in metrics:
            cell = system.cells[metric]
            text = _score(cell, system.n)
            is_best = cell.interval is not None and cell.interval.estimate == highest.get(metric)
            scores.append(Strong(text) if is_best else text)
        rows.append((system.name, *scores, str(system.n), str(system.n_failed)))
    return Grid(title or "Scores", ("system", *metrics, "n", "failed"), tuple(rows), note)


def _score(cell: Cell, n_rows: int) -> str:
    """The mean with its interval, and over how many questions if not over all."""
    failed = f" ({cell.n_failed} failed)" if cell.n_failed else ""
    if cell.interval is None:
        return f"-{failed}"
    n_scored = n_rows - cell.n_failed - cell.n_undefined
    n = f" n={n_scored}" if n_scored != n_rows else ""
    return f"{cell.interval.shown()}{n}{failed}"


def _differences(run: RunSummary, title: str, metrics: Sequence[str]) -> Grid:
    rows: list[tuple[str, ...]] = []
    for system in run.systems:
        if system.name != run.baseline:
            cells = [_difference(system.cells[metric], system.n) for metric in metrics]
            rows.append((system.name, *cells))

    name = f"{title}: difference from {run.baseline}" if title else f"Difference from {run.baseline}"
    note = (
        "Paired by question, with 95 % interval. p: paired randomisation test; * is below "
        f"{SIGNIFICANT}, where the interval excludes 0. Holm: p adjusted for the systems of the column, if it is not."
    )
    return Grid(name, ("system", *metrics), tuple(rows), note)


def _difference(cell: Cell, n_rows: int) -> str:
    """The difference with its p-value, and with Holm's if the number of systems alone explains what one comparison
    decides; over how many pairs if not over all questions."""
    if cell.difference is None or cell.p_value is None:
        return "-"
    paired = "" if cell.n_paired == n_rows else f", {counted(cell.n_paired, 'pair')}"
    text = f"{cell.difference.shown(signed=True)} p{_p(cell.p_value)}"
    if not cell.is_decided:
        return text + paired
    adjusted = cell.p_adjusted
    holm = f" (Holm p{_p(adjusted)})" if adjusted is not None and adjusted >= SIGNIFICANT else ""
    return Strong(f"{text}*{holm}{paired}")


def decision_grid(metric: str, decided: Sequence[Decision], made_half: Mapping[str, Any]) -> Grid:
    """What each half, and human questions, say of each pair of systems, and the decision."""
    halves = [half for half in (*HALVES, HUMAN) if any(half in each.differences for each in decided)]
    sizes = dict.fromkeys(halves, 0)
    rows = []
    for each in decided:
        cells = dict.fromkeys(halves, "-")
        for half, difference in each.differences.items():
            sizes[half] = max(sizes[half], difference.interval.n)
            stars = "*" * (difference.is_decided + (difference.test.p_value <= SURE))
            cells[half] = difference.interval.shown(signed=True) + stars
        text = Strong(each.text) if each.verdict else each.text
        rows.append((f"{each.first} - {each.second}", *cells.values(), text))

    n_decided = sum(each.verdict != 0 for each in decided)
    note = (
        f"{n_decided} of {counted(len(decided), 'pair')} decided. Human questions decide if they can; otherwise "
        "one half must be sure (**: three standard errors), the mean of the other agree, and that of human questions "
        "not be against. *: the half alone excludes 0 (95 %). "
        f"{bias_note(made_half)}"
    )
    headings = ("systems", *(f"{half}, n={size}" for half, size in sizes.items()), "decision")
    return Grid(f"{metric}: decisions", headings, tuple(rows), note.rstrip())


def _by_group(run: RunSummary, group: str) -> Iterator[Grid]:
    """The means of each type, or half, of questions, where there are several."""
    by_type: dict[str, list[ResultRow]] = {}
    for row in run.rows:
        by_type.setdefault(str(row.extra.get(group) or ""), []).append(row)
    if len(by_type) < _SEVERAL:
        return

    is_alone = len(run.systems) == 1
    rows = []
    for system in run.systems:
        for kind in sorted(by_type, key=lambda kind: (not kind, kind)):
            own = [row for row in by_type[kind] if row.system == system.name]
            cells = []
            for metric in run.metrics:
                scores = [row.metrics[metric] for row in own if metric in row.metrics]
                cells.append(bootstrap_mean(scores).shown() if scores else "-")
            name = kind or f"no {group}"
            rows.append((name if is_alone else f"{system.name}, {name}", *cells, str(len(own))))
    note = f"Means with 95 % intervals, over the questions of the {group} that the metric is defined for."
    first = group if is_alone else f"system and {group}"
    yield Grid(f"Scores by {group} of question", (first, *run.metrics, "n"), tuple(rows), note=note)


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else "=" + f"{value:.3f}".removeprefix("0")


def _refusals(run: RunSummary) -> Iterator[Grid]:
    """What became of the questions that have no answer, and how many of the others were refused."""
    rows = []
    for system in run.systems:
        rates = system.refusals
        if rates is not None:
            false = "-" if rates.false_refusals is None else rates.false_refusals.shown()
            shares = (each.shown() for each in (rates.refused, rates.by_threshold, rates.false_answers))
            rows.append((system.name, *shares, false, f"{rates.unanswerable}", f"{rates.answerable}"))

    if rows:
        note = (
            'Refused: below the threshold of the index, or an answer such as "I do not know". Programs are asked '
            "anyway here; `kraq ask`, chat, the explorer, the API and MCP refuse what is below the threshold."
        )
        headings = (
            "system",
            "refused",
            "by the threshold",
            "false answers",
            "false refusals",
            "unanswerable",
            "answerable",
        )
        yield Grid("Questions that the documents do not answer", headings, tuple(rows), note=note)


def _latency(run: RunSummary) -> Iterator[Grid]:
    """The papers' four stages first, then the others that take time in some system."""
    timed = [system for system in run.systems if system.stages]
    if not timed:
        return

    taken = dict.fromkeys(name for each in timed for name, times in each.stages.items() if times.p99 > 0)
    stages = [name for name in dict.fromkeys((*PAPER_STAGES, *taken)) if name in taken and name != TOTAL]
    whole = TOTAL in taken

    rows = []
    for system in timed:
        cells = [system.name]
        if whole:
            total = system.stages.get(TOTAL)
            times = (total.p50, total.p90, total.p99, parallel_seconds(system.stages)) if total else ()
            cells += map(seconds, times) if times else ["-"] * 4
        for taken_by in map(system.stages.get, stages):
            cells.append(f"{seconds(taken_by.p50)} ({seconds(taken_by.mean)})" if taken_by else "")
        rows.append(tuple(cells))

    note = (
        f"Measured at concurrency {run.header.extra.get('in_flight', '?')}: systems compare with each other only. Of "
        "each stage the median, in brackets the mean; a stage with branches counts with its slowest."
    )
    if whole:
        note += (
            " p50, p90, p99: the whole question on the clock. Parallel model: the sum of the medians (KRAQ paper, "
            "appendix D.1); an estimate."
        )

    headings = ("system", *(("p50", "p90", "p99", "parallel model") if whole else ()), *stages)
    yield Grid("Latency", headings, tuple(rows), note=note)


_RESOURCES = {
    "calls": ("model calls", "{:.1f}"), "prompt_tokens": ("tokens in", "{:,.0f}"),
    "completion_tokens": ("tokens out", "{:,.0f}"), "cost": ("price", "{:.6f}"), "cpu_percent": ("CPU", "{:.1f} %"),
    "memory_mb": ("memory, MB", "{:,.0f}"), "gpu_mb": ("GPU memory, MB", "{:,.0f}"),
}  # fmt: skip


def _folds(run: RunSummary) -> Iterator[Grid]:
    """Quartiles of the scores, and how far the means of the folds lie apart (K2RAG paper, Algorithm 3)."""
    count = run.table.get("folds", 0)
    if not count:
        return

    rows = []
    for system in run.systems:
        for metric in run.metrics:
            cell = system.cells[metric]
            if cell.interval is not None and cell.quartiles is not None and cell.folds:
                values = (
                    cell.quartiles[0],
                    cell.interval.estimate,
                    cell.quartiles[1],
                    min(cell.folds),
                    max(cell.folds),
                )
                rows.append((f"{system.name}, {metric}", *map(number, values)))
    headings = ("system and metric", "Q1", "mean", "Q3", "lowest fold", "highest fold")
    note = f"Quartiles over questions; means of {counted(count, 'fold')} of the questions, drawn by the seed."
    yield Grid("Quartiles and folds", headings, tuple(rows), note=note)


def _resources(run: RunSummary) -> Iterator[Grid]:
    known = [name for name in _RESOURCES if any(name in system.resources for system in run.systems)]
    if not known:
        return

    rows = tuple(
        (each.name, *(_RESOURCES[name][1].format(each.resources[name]) if name in each.resources else "-"
                      for name in known))
        for each in run.systems
    )  # fmt: skip

    note = (
        "Means for a question; price in the currency of kraq.toml (prompt_price, completion_price). CPU: the share of "
        "all processors that this process kept busy meanwhile. Memory: what this process held after a question; "
        "systems are asked one after the other in one process, and what a server holds is not in it."
    )
    yield Grid("Resources of a question", ("system", *(_RESOURCES[name][0] for name in known)), rows, note=note)
