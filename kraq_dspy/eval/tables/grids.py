"""Puts the figures of a summary into grids of text, which each way of showing them only draws."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kraq_dspy.eval.latency import PAPER_STAGES, Percentiles
from kraq_dspy.eval.papers.listing import figures_of, shown
from kraq_dspy.eval.statistics import Interval
from kraq_dspy.eval.tables.summary import Cell, Latency, RunsBeside, RunSummary, SystemSummary, TableSummary

SIGNIFICANT = 0.05
CHANGED = 5  # questions shown that fell, and as many that rose
ABOUT = ("program", "retriever", "model", "encoder", "passages")
_WIDE = 6  # more metrics than this get a grid for each kind


@dataclass(frozen=True, slots=True)
class Grid:
    """`rows` start with their name. `strong` are the (row, column) positions to be stressed."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    note: str = ""


def grids(run: RunSummary, *, brief: bool = False) -> list[Grid]:
    """What the systems are, scores, differences, failures and, unless `brief`, latency and cost: those there are."""
    parts: list[Grid] = []
    if (made_of := _made_of(run)) is not None:
        parts.append(made_of)
    for title, metrics in _groups(run.metrics):
        parts.append(_scores(run, title, metrics))
        if run.baseline and len(run.systems) > 1:
            parts.append(_differences(run, title, metrics))
    more = [] if brief else [_latency(run), _resources(run)]
    parts += [grid for grid in (*more, _failures(run)) if grid is not None]
    return parts


def failed_questions(run: RunSummary, most: int) -> Grid | None:
    """The questions that each system did worst by the first metric, or failed, with what it read from; the worst first.

    None where every question is right, or none was answered.
    """
    metric = next(iter(run.metrics), "")
    failed = [
        (row.metrics.get(metric, -1.0), row)
        for row in run.rows
        if row.failure is not None or row.metrics.get(metric, 1.0) < 1.0
    ]
    if not failed or not any(row.answer or row.failure or row.extra.get("evidence") for _, row in failed):
        return None
    failed.sort(key=lambda pair: (pair[0], pair[1].question_id, pair[1].system))
    rows = tuple(
        (
            row.system,
            "failed" if score < 0 else number(score),
            str(row.extra.get("question", row.question_id)),
            "; ".join(row.extra.get("gold", ())),
            row.failure or row.answer,
            " | ".join(row.extra.get("evidence", ())),
        )
        for score, row in failed[:most]
    )
    headings = ("system", metric, "question", "gold", "answer", "evidence")
    filled = [column for column, _ in enumerate(headings) if any(row[column] for row in rows)]
    note = f"{len(failed)} of {len(run.rows)} rows are below 1 in {metric}; shown are the worst, {len(rows)}."
    return Grid(
        "Questions that failed",
        tuple(headings[column] for column in filled),
        tuple(tuple(row[column] for column in filled) for row in rows),
        note=note,
    )


def beside_grids(beside: RunsBeside) -> list[Grid]:
    """Two runs beside each other: the metrics, and the questions whose score fell or rose most."""
    names = (beside.first, beside.second) if beside.first != beside.second else ("first run", "second run")
    rows, strong = [], set()
    for place, each in enumerate(beside.metrics):
        sure = each.p_adjusted < SIGNIFICANT
        if sure:
            strong.add((place, 3))
        means = [number(mean.estimate) for mean in (each.comparison.baseline, each.comparison.system)]
        difference = f"{_interval(each.comparison.difference, signed=True)}{'*' if sure else ''}"
        rows.append((each.metric, *means, difference, _p(each.p_adjusted).lstrip("="), str(each.n)))
    note = (
        "Paired by question, with 95 % interval (BCa bootstrap). p: paired randomisation test, adjusted by Holm for "
        f"the metrics; * is below {SIGNIFICANT}."
    )
    parts = [
        Grid(f"{beside.dataset}: second minus first", ("metric", *names, "difference", "p", "questions"), tuple(rows),
             frozenset(strong), note)
    ]  # fmt: skip
    metric = beside.metrics[0].metric
    ends = [*beside.changed[:CHANGED], *beside.changed[max(CHANGED, len(beside.changed) - CHANGED) :]]
    changed = tuple(
        (
            str(row.extra.get("question", row.question_id)),
            "; ".join(row.extra.get("gold", ())),
            *(f"{number(each.metrics[metric]) if metric in each.metrics else 'failed'} {each.failure or each.answer}"
              for each in (row, other)),
        )
        for row, other in ends
    )  # fmt: skip
    if changed:
        note = f"{len(beside.changed)} questions have another {metric}; shown are those that fell and rose most."
        parts.append(Grid("Questions that changed", ("question", "gold", "before", "after"), changed, note=note))
    return parts


def paper_grids(summary: TableSummary) -> list[Grid]:
    """The tables of the papers that the runs have figures of, with the papers' rows and columns."""
    return [
        Grid(
            f"{figures.table.paper}, {figures.table.number}: {figures.table.shows}",
            ("", *(column.label for column in figures.table.columns)),
            tuple((label, *map(shown, values)) for label, values in zip(figures.rows, figures.ours, strict=True)),
            note=" ".join((f"{figures.table.id}, our figures, on {', '.join(figures.datasets)}.", *figures.notes)),
        )
        for figures in figures_of(summary)
    ]


def setup_lines(summary: TableSummary) -> dict[str, str]:
    """How far the runs of a paper's table are the paper's: what is set as there, what stands in, what is otherwise."""
    if not summary.runs or not summary.runs[0].table.get("setup"):
        return {}
    told: dict[str, str] | None = summary.runs[0].header.extra.get("paper")
    return told or {"as in the paper": "its systems alone; settings and prompts are this library's (--paper sets its)"}


def facts(run: RunSummary) -> dict[str, str]:
    """What made the figures, in words."""
    header, extra = run.header, run.header.extra
    share = f"{extra.get('asked', len(run.rows))} of {extra.get('asked', 0) + extra.get('not_asked', 0)}"
    lines = {
        "questions": share if extra.get("not_asked") else str(extra.get("asked", "")),
        "documents": f"{extra['documents']:,}" if "documents" in extra else "",
        "sample": f"questions until their evidence has {extra['sample_tokens']:,} tokens"
        if extra.get("sample_tokens")
        else "",
        "generated questions": ", ".join(
            f"{name} {count:,}{_templates(extra.get('templates', {}).get(name, 0))}"
            for name, count in extra.get("questions", {}).items()
        ),
        "data": extra.get("data", ""),
        "models": _models(header.models),
        "weights": ", ".join(f"{name} sha256 {digest[:16]}" for name, digest in extra.get("weights", {}).items()),
        "judge's agreement with labels": "; ".join(extra.get("judge_agreement", ())),
        "encoder": header.models.get("encoder", ""),
        "BERTScore": header.models.get("bertscore", ""),
        "seeds": ", ".join(f"{name} {seed}" for name, seed in header.seeds.items()),
        "concurrency": str(extra.get("in_flight", "")),
        "index": header.index_fingerprint,
        "library": f"kraq-dspy {header.library_version}",
        **{name: text for name, text in header.made_with.items() if name != "library"},
        "begun": header.created_at[:19].replace("T", " "),
        "notes": " ".join(extra.get("notes", ())),
        "unfinished": ", ".join(f"{name}: {count} questions missing" for name, count in run.missing.items()),
    }
    return {name: text for name, text in lines.items() if text}


def _templates(count: int) -> str:
    return f" ({count:,} of templates)" if count else ""


def _models(models: Mapping[str, str]) -> str:
    """Roles by model: most runs have one for all."""
    roles: dict[str, list[str]] = {}
    for role, name in models.items():
        if role not in ("encoder", "bertscore"):
            roles.setdefault(name, []).append(role)
    return "; ".join(f"{name} ({', '.join(each)})" for name, each in roles.items())


def number(value: float, *, signed: bool = False) -> str:
    """Three decimals for shares, one for counts."""
    digits = 3 if abs(value) < 10 else 1
    value = round(value, digits) + 0.0  # no negative zero
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"


def stages_of(latencies: Sequence[Latency]) -> list[str]:
    """Those that take time in some system, the papers' four first, in the order in which a question goes through."""
    taken = dict.fromkeys(stage for each in latencies for stage, times in each.stages.items() if times.p99 > 0)
    return [*(stage for stage in PAPER_STAGES if stage in taken), *(each for each in taken if each not in PAPER_STAGES)]


def own_systems(run: RunSummary) -> list[SystemSummary]:
    """Without the points of ablations, which are curves of their own."""
    points = {name for ablation in run.table.get("ablations", ()) for _, name in ablation["points"]}
    bases = {ablation["of"] for ablation in run.table.get("ablations", ())}
    return [system for system in run.systems if system.name not in points or system.name in bases]


def _made_of(run: RunSummary) -> Grid | None:
    """What each system is: program, retriever, model, encoder, passages."""
    described = run.table.get("systems", {})
    about = {system.name: described.get(system.name, {}).get("about", {}) for system in run.systems}
    columns = [name for name in ABOUT if any(name in each for each in about.values())]
    if not columns:
        return None
    rows = tuple((system, *(str(each.get(name, "")) for name in columns)) for system, each in about.items())
    return Grid("Systems", ("system", *columns), rows)


def _scores(run: RunSummary, title: str, metrics: Sequence[str]) -> Grid:
    rows = []
    for system in run.systems:
        cells = [_score(system.cells[metric]) for metric in metrics]
        rows.append((system.name, *cells, str(system.n), str(system.n_failed)))
    note = "Mean with 95 % interval (BCa bootstrap over questions)."
    undefined = sorted({(metric, run.systems[0].cells[metric].n_undefined) for metric in metrics if run.systems})
    for metric, count in undefined:
        if count and count < run.systems[0].n:
            note += f" {metric}: {count} questions have no gold data for it."
    return Grid(title or "Scores", ("system", *metrics, "n", "failed"), tuple(rows), _best(run, metrics), note)


def _score(cell: Cell) -> str:
    failed = f" ({cell.n_failed} failed)" if cell.n_failed else ""
    return f"{_interval(cell.interval)}{failed}" if cell.interval else f"-{failed}"


def _interval(interval: Interval, *, signed: bool = False) -> str:
    low, high = number(interval.low, signed=signed), number(interval.high, signed=signed)
    return f"{number(interval.estimate, signed=signed)} [{low}, {high}]"


def _best(run: RunSummary, metrics: Sequence[str]) -> frozenset[tuple[int, int]]:
    """The highest mean of each metric; none where all are equal."""
    strong = set()
    for column, metric in enumerate(metrics, start=1):
        means = {
            row: interval.estimate
            for row, system in enumerate(run.systems)
            if (interval := system.cells[metric].interval) is not None
        }
        if len(set(means.values())) > 1:
            strong |= {(row, column) for row, mean in means.items() if mean == max(means.values())}
    return frozenset(strong)


def _differences(run: RunSummary, title: str, metrics: Sequence[str]) -> Grid:
    rows: list[tuple[str, ...]] = []
    strong: set[tuple[int, int]] = set()
    for system in run.systems:
        if system.name == run.baseline:
            continue
        cells = []
        for column, metric in enumerate(metrics, start=1):
            cell = system.cells[metric]
            if cell.difference is None or cell.p_adjusted is None:
                cells.append("-")
                continue
            sure = cell.p_adjusted < SIGNIFICANT
            if sure:
                strong.add((len(rows), column))
            paired = "" if cell.n_paired == system.n else f", {cell.n_paired} pairs"
            cells.append(
                f"{_interval(cell.difference, signed=True)} p{_p(cell.p_adjusted)}{'*' if sure else ''}{paired}"
            )
        rows.append((system.name, *cells))
    name = f"{title}: difference from {run.baseline}" if title else f"Difference from {run.baseline}"
    note = (
        "Paired by question, with 95 % interval. p: paired randomisation test, adjusted by Holm for the systems of the "
        f"column; * is below {SIGNIFICANT}."
    )
    return Grid(name, ("system", *metrics), tuple(rows), frozenset(strong), note)


def _p(value: float) -> str:
    return "<.001" if value < 0.001 else "=" + f"{value:.3f}".removeprefix("0")


def _latency(run: RunSummary) -> Grid | None:
    timed = [(system.name, system.latency) for system in run.systems if system.latency is not None]
    if not timed:
        return None
    stages = stages_of([latency for _, latency in timed])
    measured = any(latency.total is not None for _, latency in timed)
    headings = ["system", *(("p50", "p90", "p99", "parallel model") if measured else ()), *stages]
    rows = []
    for name, latency in timed:
        total = (
            [seconds(value) for value in (latency.total.p50, latency.total.p90, latency.total.p99)]
            if latency.total
            else []
        )
        modelled = [seconds(latency.modelled)] if latency.modelled is not None else []
        per_stage = [_median_and_mean(latency.stages.get(stage)) for stage in stages]
        rows.append((name, *total, *modelled, *per_stage))
    note = f"Measured at concurrency {run.header.extra.get('in_flight', '?')}: systems compare with each other only. "
    if measured:
        note += (
            "p50, p90, p99: the whole question on the clock. Then the stages' medians, in brackets their means; a "
            "stage with branches counts with its slowest. Parallel model: the sum of the medians (KRAQ paper, appendix "
            "D.1); an estimate."
        )
    else:
        note += "Medians of one search, in brackets means."
    return Grid("Latency", tuple(headings), tuple(rows), note=note)


def _median_and_mean(times: Percentiles | None) -> str:
    return f"{seconds(times.p50)} ({seconds(times.mean)})" if times else ""


def _resources(run: RunSummary) -> Grid | None:
    measured = [(system, system.resources) for system in run.systems if system.resources is not None]
    if not measured:
        return None
    rows = tuple(
        (
            system.name,
            seconds(system.latency.total.mean) if system.latency and system.latency.total else "-",
            f"{spent.calls:.1f}",
            f"{spent.prompt_tokens:,.0f}",
            f"{spent.completion_tokens:,.0f}",
            "-" if spent.cost is None else f"{spent.cost:.6f}",
            "-" if spent.cpu_percent is None else f"{spent.cpu_percent:.1f} %",
            "-" if spent.memory_mb is None else f"{spent.memory_mb:,.0f}",
            "-" if spent.gpu_mb is None else f"{spent.gpu_mb:,.0f}",
        )
        for system, spent in measured
    )
    headings = (
        "system",
        "time",
        "model calls",
        "tokens in",
        "tokens out",
        "price",
        "CPU",
        "memory, MB",
        "GPU memory, MB",
    )
    note = (
        "Means for a question; price in the currency of kraq.toml (prompt_price, completion_price). CPU: the share of "
        "all processors that this process kept busy meanwhile. Memory: what "
        "this process held after a question; systems are asked one after the other in one process, and what a "
        "server holds is not in it."
    )
    return Grid("Resources of a question", headings, rows, note=note)


def _failures(run: RunSummary) -> Grid | None:
    rows = tuple(
        (system.name, str(count), reason)
        for system in run.systems
        for reason, count in list(system.reasons.items())[:10]
    )
    if not rows:
        return None
    return Grid("What failed", ("system", "questions", "reason"), rows, note="Counted, and left out of the means.")


def _groups(metrics: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """All metrics together, or by what stands before the "@" where they would be too wide."""
    if len(metrics) <= _WIDE:
        yield "", list(metrics)
        return
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        groups.setdefault(metric.partition("@")[0], []).append(metric)
    yield from groups.items()
