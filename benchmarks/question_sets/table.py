"""Computes the tables from the measured figures, in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from peers.table import as_markdown
from question_sets.measures import SCORES


def cost_table(costs: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """What the sets took, for each question that was made, with all that was tried in vain."""
    head = ["", "made of tried", "calls a question", "prompt tokens", "written", "cut off", "seconds"]
    rows = []
    for name, cost in costs.items():
        made = cost["made"]
        asked = [
            "" if cost[key] is None or not made else f"{cost[key] / made:,.{digits}f}"
            for key, digits in (("calls", 1), ("prompt_tokens", 0), ("written_tokens", 0))
        ]
        cut = "" if cost["cut"] is None else str(cost["cut"])
        seconds = f"{cost['seconds'] / made:.1f}" if made else ""
        rows.append([titles[name], f"{made} of {cost['tried']}", *asked, cut, seconds])
    return as_markdown(head, rows)


def quality_table(
    sets: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], answerable: Mapping[str, Sequence[float]] | None
) -> str:
    """One row for each set, with 95 % intervals where there are any."""
    head = ["", "questions", "words", "nearest", "among five", "names", "duplicates", "self-BLEU", "answerable"]
    head += ["Relevance", "less KRAQ's"]
    rows = []
    for name, row in sets.items():
        rows.append(
            [
                titles[name],
                share(row["are_questions"]),
                str(row["words"]),
                *[share(row["covered"][key]) for key in ("nearest", "among_five", "names")],
                share(row["duplicates"]),
                share(row["self_bleu"][0]),
                between(answerable[name], 2) if answerable else "",
                between(row["relevance"], 3),
                between(row["relevance_from_kraq"], 3, signed=True) if row["relevance_from_kraq"] else "",
            ]
        )
    return as_markdown(head, rows)


def ranking_table(
    sets: Mapping[str, Mapping[str, Any]],
    titles: Mapping[str, str],
    expected: Mapping[str, Sequence[float] | None],
) -> str:
    """Mean scores over the retrievers, and Spearman's correlation with people's ranking; the last row is what as many
    of people's questions reach on average."""
    head = ["", *[f"{score}, mean" for score in SCORES], *[f"rho by {score}" for score in SCORES]]
    rows = []
    for name, row in sets.items():
        means = [share(sum(means.values()) / len(means)) for means in row["means"].values()]
        rows.append([titles[name], *means, *[_agreement(row["agreement"][score]) for score in SCORES]])
    same = [between(value, 2) if (value := expected[score]) else "" for score in SCORES]
    rows.append(["as many of people's, drawn", *[""] * len(SCORES), *same])
    return as_markdown(head, rows)


def between(values: Sequence[float], digits: int, *, signed: bool = False) -> str:
    """An estimate and the ends of its interval."""
    estimate, low, high = (share(value, digits, signed=signed) for value in values)
    return f"{estimate} [{low}, {high}]"


def share(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """Without the zero before the point, as the results are written."""
    written = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return written.replace("0.", ".", 1) if abs(value) < 1 and not written.lstrip("+-").startswith("1") else written


def _agreement(row: Mapping[str, Any]) -> str:
    if row["rho"] is None:
        return "no order"
    return between([row["rho"], *row["interval"]], 2) if row["interval"] else share(row["rho"])
