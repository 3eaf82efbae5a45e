"""Estimates what an index will cost, before any model is asked: `kraq estimate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.shared.bars import Bars, label
from kraq_dspy.apps.cli.shared.options import Columns, Json, Models
from kraq_dspy.apps.cli.shared.terminal import compact, grid, in_time, note, output, print_json, say, short

if TYPE_CHECKING:
    from kraq_dspy.build.index.estimate import Estimate
    from kraq_dspy.records import Usage


def estimate(
    corpus: Annotated[Path, typer.Argument(help="A corpus, or the folder of an index that is under way.")],
    models: Models,
    columns: Columns,
    tokens_per_second: Annotated[
        float | None, typer.Option("--tokens-per-second", min=0.1, help="What the models serve: estimates the time.")
    ] = None,
    rehearse: Annotated[
        int, typer.Option("--rehearse", min=1, metavar="CHUNKS", help="Read so many with the embedded model.")
    ] = 2000,
    json: Json = False,
) -> None:
    """Calls, tokens and money of an index, stage by stage, without asking a model."""
    from kraq_dspy.build.index.estimate import estimate_corpus, estimate_index

    with Bars(quiet=json) as bars:
        if (corpus / "manifest.json").is_file():
            settings = models.settings_of(corpus)
            result = estimate_index(corpus, settings, tokens_per_second=tokens_per_second, progress=bars)
        else:
            settings = columns.over(models.settings())
            result = estimate_corpus(
                corpus, settings, tokens_per_second=tokens_per_second, rehearse=rehearse, progress=bars
            )
    show_estimate(corpus, result, tokens_per_second, json=json)


def show_estimate(name: Path, result: "Estimate", tokens_per_second: float | None = None, *, json: bool) -> None:
    """Calls, tokens and money by stage, and what is known for certain."""
    if json:
        totals = {"expected": result.expected, "low": result.low, "high": result.high, "cost": result.cost}
        print_json({"estimate": result, **totals})
        return
    say(f"{name}: {result.documents:,} documents, {result.chunks:,} chunks, {compact(result.corpus_tokens)} tokens")
    rows = [
        (label(stage.stage), short(stage.model, 30), *_cells(stage.expected, stage.cost)) for stage in result.stages
    ]
    table = grid("", "stage,model,>calls,>tokens in,>tokens out,>cost", rows)
    table.add_section()
    table.add_row("together", "", *_cells(result.expected, result.cost), style="bold")
    table.add_row("at least", "", *_cells(result.low, None))
    table.add_row("at most", "", *_cells(result.high, result.cost_high))
    output.print(table)
    if result.seconds is not None:
        say(f"about {in_time(result.seconds)} at {tokens_per_second:g} tokens a second")
    exact = ", ".join(label(stage.stage) for stage in result.stages if stage.exact_calls)
    say(f"Number of calls exact, save for retries: {exact}. The rest is what the embedded model would need.")
    if result.cost is None:
        say("For money, give the roles prompt_price and completion_price in kraq.toml, for a million tokens.")
    for problem in result.problems[:10]:
        note(short(problem, 240), label="left out: ")


def _cells(usage: "Usage", cost: float | None) -> tuple[str, str, str, str]:
    money = "" if cost is None else f"{cost:,.2f}"
    return f"{usage.calls:,}", compact(usage.prompt_tokens), compact(usage.completion_tokens), money
