"""Computes the tables from the measured figures: medians over rounds, ratios to this library, Markdown."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from kraq_dspy.eval.statistics import bootstrap_difference

OURS = "kraq"


def medians(rounds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of each figure that is a number; counts of records are those of the first round."""
    names = [name for name, value in rounds[0].items() if isinstance(value, int | float)]
    return {name: statistics.median(figures[name] for figures in rounds) for name in names}


def over_limit(figures: Mapping[str, float], latency_s: float, in_flight: int) -> float:
    """Wall time over the least that so many calls can take, `in_flight` at a time."""
    return figures["wall_s"] / (figures["calls"] * latency_s / in_flight)


def has_hierarchy(communities: Sequence[int]) -> bool:
    """Whether there are communities at more than one level; `communities` are their numbers by level."""
    return len(communities) > 1


def indexing_table(
    measured: Mapping[str, Sequence[Mapping[str, Any]]],
    titles: Mapping[str, str],
    *,
    corpus_tokens: int,
    latency_s: float,
    in_flight: int,
) -> str:
    """One row for each system, in the order of `measured`, which has the figures of each round.

    Ratios in brackets are to `kraq index`, and left out where it was not measured.
    """
    ours = medians(measured[OURS]) if OURS in measured else None
    head = ["", "wall s", "CPU s", "peak MB", "calls", "prompt tokens", "failures", "wall / limit", "hierarchy"]
    rows = []
    for name, rounds in measured.items():
        figures, counts = medians(rounds), rounds[0]["counts"]
        tokens = figures["prompt_tokens"]
        levels = counts["communities"]
        rows.append(
            [
                titles[name],
                *[
                    f"{figures[key]:,.{digits}f}" + (f" ({figures[key] / ours[key]:.1f} x)" if ours else "")
                    for key, digits in (("wall_s", 1), ("cpu_s", 1), ("peak_mb", 0))
                ],
                f"{figures['calls']:,.0f}",
                f"{tokens / 1e6:.3f} M ({tokens / corpus_tokens:.1f} x corpus)",
                str(counts["failures"]),
                f"{over_limit(figures, latency_s, in_flight):.1f}",
                f"yes ({' + '.join(map(str, levels))})" if has_hierarchy(levels) else "no",
            ]
        )
    return as_markdown(head, rows)


def graph_table(measured: Mapping[str, Sequence[Mapping[str, Any]]], titles: Mapping[str, str]) -> str:
    """What each system made of the same articles and answers."""
    names = ("chunks", "entities", "relationships")
    rows = [
        [titles[system], *[f"{rounds[0]['counts'][name]:,}" for name in names], f"{rounds[0]['most_in_flight']}"]
        for system, rounds in measured.items()
    ]
    return as_markdown(["", *names, "most calls in flight"], rows)


def retrieval_table(rows: Sequence[Mapping[str, Any]], compared: int) -> str:
    """`rows` as `retrieval.measure` makes them, with `title` and `calls`. The best at the budget `compared` is what the
    others are compared with there: the difference, with its 95 % interval over the questions."""
    best = max(rows, key=lambda row: statistics.mean(row["recall"][compared]))
    budgets = list(rows[0]["recall"])
    head = ["", *[f"{budget:,}" if budget else "all" for budget in budgets]]
    head += [f"at {compared:,}, to the best", "tokens of all", "calls", "ms"]
    cells = []
    for row in rows:
        interval = bootstrap_difference(row["recall"][compared], best["recall"][compared])
        shown = f"{_signed(interval.estimate)} [{_signed(interval.low)}, {_signed(interval.high)}]"
        recall = [_three_digits(statistics.mean(row["recall"][budget])) for budget in budgets]
        rest = [f"{row['tokens']:,.0f}", f"{row['calls']:.0f}", f"{row['ms']:,.0f}"]
        cells.append([row["title"], *recall, "" if row is best else shown, *rest])
    return as_markdown(head, cells)


def as_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of which `head` names the columns."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def _signed(share: float) -> str:
    return f"{share:+.3f}".replace("0.", ".", 1)


def _three_digits(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")
