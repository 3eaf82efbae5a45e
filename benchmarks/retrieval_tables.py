"""The tables of docs/results/retrieval.md from a run of `kraq eval retrievers`: recall, MRR, time, and who beats whom.

    python benchmarks/retrieval_tables.py runs/retrievers [--times runs/times]

For each data set: recall@5 and @10 and MRR@10 with 95 % intervals, median milliseconds of a search with ten passages
(the encoder included), from `--times` where the run itself shared its machine. Then `--against` beside the best other
retriever of each budget, chosen by its mean on those same questions, which favours it, and beside each of them over the
questions of all sets but the `--tuned` ones: differences are paired, with 95 % bootstrap intervals.
"""

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy.eval.statistics import Interval, bootstrap_difference
from kraq_dspy.eval.summary import RunSummary, SystemSummary, find_runs, summarise

METRICS = ("recall@5", "recall@10", "mrr@10")
BUDGETS = (5, 10, 15)


def table(run: RunSummary) -> str:
    """One data set, the retrievers in the table's order; the best mean of a column in bold."""
    documents, n = run.header.extra["documents"], run.systems[0].n - run.systems[0].cells["recall@5"].n_undefined
    lines = [f"| {run.header.dataset} ({documents:,} passages, {n} questions) | {' | '.join(METRICS)} | ms |"]
    lines.append("|---" * (len(METRICS) + 2) + "|")
    best = {metric: max(_mean(system, metric) for system in run.systems) for metric in METRICS}
    for system in run.systems:
        cells = [_shown(system, metric, best[metric]) for metric in METRICS]
        lines.append(f"| {system.name} | {' | '.join(cells)} | {_ms(system):.1f} |")
    return "\n".join(lines)


def comparison(runs: list[RunSummary], chosen: str) -> str:
    """`chosen` against the best of the others, and how many of them it is surely above and below, at each budget."""
    lines = [
        f"| {chosen} against the best other | {' | '.join(f'recall@{k}' for k in BUDGETS)} | surely above / below |"
    ]
    lines.append("|---" * (len(BUDGETS) + 2) + "|")
    for run in runs:
        cells, above, below = [], 0, 0
        for k in BUDGETS:
            own = _scores(run, chosen, k)
            others = {system.name: _scores(run, system.name, k) for system in run.systems if system.name != chosen}
            differences = {name: _difference(own, scores) for name, scores in others.items()}
            above += sum(each.low > 0 for each in differences.values())
            below += sum(each.high < 0 for each in differences.values())
            best = max(others, key=lambda name: float(np.mean(list(others[name].values()))))
            difference = differences[best]
            cells.append(f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}] {best}")
        pairs = len(BUDGETS) * (len(run.systems) - 1)
        lines.append(f"| {run.header.dataset} | {' | '.join(cells)} | {above} / {below} of {pairs} |")
    return "\n".join(lines)


def pooled(runs: list[RunSummary], chosen: str) -> str:
    """`chosen` against each other retriever over the questions of all runs together."""
    n = sum(len(_scores(run, chosen, BUDGETS[0])) for run in runs)
    sets = ", ".join(run.header.dataset for run in runs)
    lines = [f"| {chosen} against, {n:,} questions of {sets} | {' | '.join(f'recall@{k}' for k in BUDGETS)} |"]
    lines.append("|---" * (len(BUDGETS) + 1) + "|")
    for name in [system.name for system in runs[0].systems if system.name != chosen]:
        cells = []
        for k in BUDGETS:
            own, other = (
                {(run.header.dataset, id): score for run in runs for id, score in _scores(run, each, k).items()}
                for each in (chosen, name)
            )
            difference = _difference(own, other)
            cells.append(f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _timed(run: RunSummary, times: RunSummary) -> RunSummary:
    """The run with the seconds of another run of the same systems."""
    stages = {system.name: system.stages for system in times.systems}
    systems = tuple(dataclasses.replace(system, stages=stages[system.name]) for system in run.systems)
    return dataclasses.replace(run, systems=systems)


def _difference(own: Mapping[Any, float], other: Mapping[Any, float]) -> Interval:
    shared = sorted(own.keys() & other.keys())
    return bootstrap_difference([own[each] for each in shared], [other[each] for each in shared])


def _scores(run: RunSummary, name: str, k: int) -> dict[str, float]:
    """By question id."""
    metric = f"recall@{k}"
    return {row.question_id: row.metrics[metric] for row in run.rows if row.system == name and metric in row.metrics}


def _mean(system: SystemSummary, metric: str) -> float:
    interval = system.cells[metric].interval
    return interval.estimate if interval is not None else 0.0


def _shown(system: SystemSummary, metric: str, best: float) -> str:
    interval = system.cells[metric].interval
    if interval is None:
        return ""
    mean = _short(interval.estimate)
    mean = f"**{mean}**" if interval.estimate == best else mean
    return f"{mean} [{_short(interval.low)}, {_short(interval.high)}]"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def _ms(system: SystemSummary) -> float:
    return system.stages["k=10"].p50 * 1000 if system.stages else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the folder that `kraq eval retrievers` wrote")
    parser.add_argument("--times", type=Path, help="a run of the same table on an idle machine, for the milliseconds")
    parser.add_argument("--against", default="adaptive", help="the retriever to compare with each other one")
    parser.add_argument("--tuned", nargs="*", default=["musique"], help="sets whose questions `--against` was tuned on")
    options = parser.parse_args()
    runs = list(summarise(find_runs(options.run)).runs)
    if options.times:
        timed = {run.header.dataset: run for run in summarise(find_runs(options.times)).runs}
        runs = [_timed(run, timed[run.header.dataset]) for run in runs]
    for run in runs:
        print(table(run), end="\n\n")
    print(comparison(runs, options.against), end="\n\n")
    print(pooled([run for run in runs if run.header.dataset not in options.tuned], options.against))


if __name__ == "__main__":
    main()
