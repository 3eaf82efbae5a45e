"""`kraq estimate`: what an index will cost, before any model is asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.speculative import in_time
from kraq_dspy.cli.terminal import Bars, compact, errors, output, print_json, short

if TYPE_CHECKING:
    from kraq_dspy.records import Usage


def estimate(
    corpus: Annotated[Path, typer.Argument(help="A corpus, or the folder of an index that is under way.")],
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    tokens_per_second: Annotated[
        float | None, typer.Option("--tokens-per-second", min=0.1, help="What the models serve: estimates the time.")
    ] = None,
    rehearse: Annotated[
        int, typer.Option("--rehearse", min=1, metavar="CHUNKS", help="Read so many with the embedded model.")
    ] = 2000,
    json: options.Json = False,
) -> None:
    """Calls, tokens and money of an index, stage by stage, without asking a model."""
    from kraq_dspy.indexing.estimate import estimate_corpus, estimate_index
    from kraq_dspy.stores.index import Index

    with Bars(quiet=json) as bars:
        if (corpus / "manifest.json").is_file():
            with Index.open(corpus) as index:
                made_with = index.manifest.settings
            settings = options.settings_from(config, base=made_with, lm=lm, api_base=api_base)
            found = estimate_index(corpus, settings, tokens_per_second=tokens_per_second, progress=bars)
        else:
            settings = options.settings_from(config, lm=lm, api_base=api_base)
            found = estimate_corpus(
                corpus, settings, tokens_per_second=tokens_per_second, rehearse=rehearse, progress=bars
            )
    if json:
        totals = {"expected": found.expected, "low": found.low, "high": found.high, "cost": found.cost}
        print_json({"estimate": found, **totals})
        return
    size = f"{found.documents:,} documents, {found.chunks:,} chunks, {compact(found.corpus_tokens)} tokens"
    table = Table(title=f"{corpus}: {size}", title_justify="left")
    for heading in ("stage", "model", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="left" if heading in ("stage", "model") else "right")
    for stage in found.stages:
        table.add_row(stage.stage, short(stage.model, 40), *_cells(stage.expected, stage.cost))
    table.add_section()
    table.add_row("together", "", *_cells(found.expected, found.cost), style="bold")
    table.add_row("at least", "", *_cells(found.low, None))
    table.add_row("at most", "", *_cells(found.high, found.cost_high))
    output.print(table)
    if found.seconds is not None:
        output.print(f"about {in_time(found.seconds)} at {tokens_per_second:g} tokens a second")
    exact = ", ".join(stage.stage for stage in found.stages if stage.exact_calls)
    output.print(f"Number of calls exact, save for retries: {exact}. The rest is what the embedded model would need.")
    if found.cost is None:
        output.print("For money, give the roles prompt_price and completion_price in kraq.toml, for a million tokens.")
    for problem in found.problems[:10]:
        errors.print(Text("left out: ", style="yellow") + short(problem, 240))


def _cells(usage: "Usage", cost: float | None) -> tuple[str, str, str, str]:
    money = "" if cost is None else f"{cost:,.2f}"
    return f"{usage.calls:,}", compact(usage.prompt_tokens), compact(usage.completion_tokens), money
