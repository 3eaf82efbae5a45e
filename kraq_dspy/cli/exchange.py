"""`kraq import` and `kraq export`: other systems' graphs in, this one's out."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.cli import options
from kraq_dspy.cli.build import show_report
from kraq_dspy.cli.terminal import Bars, output, print_json

imports = typer.Typer(help="Make an index from another system's graph.", no_args_is_help=True)


@imports.command("graphrag")
def graphrag(
    folder: Annotated[Path, typer.Argument(help="GraphRAG's output folder: parquet files, any version.")],
    out: options.Out,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    encoder: options.Encoder = None,
    encoder_api_base: options.EncoderBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Reports become summaries, then questions; nothing is extracted again."""
    from kraq_dspy.indexing.build import import_graphrag

    settings = options.settings_from(
        config,
        lm=lm,
        api_base=api_base,
        encoder=encoder,
        encoder_api_base=encoder_api_base,
        concurrency=concurrency,
    )
    with Bars(quiet=json) as bars:
        limits = options.limits_from(max_calls, max_tokens, max_cost)
        report = import_graphrag(folder, out, settings=settings, progress=bars, limits=limits)
    show_report(report, json=json)


@imports.command("triples")
def triples(
    path: Annotated[
        Path,
        typer.Argument(help="A folder with corpus and triples files, or one file with passages and their triples."),
    ],
    out: options.Out,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    encoder: options.Encoder = None,
    encoder_api_base: options.EncoderBase = None,
    concurrency: options.Concurrency = None,
    random_questions: Annotated[
        bool, typer.Option("--random-questions", help="Also make the papers' baseline: questions from random chunks.")
    ] = False,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Passages with triples extracted elsewhere; summaries and questions are made here."""
    from kraq_dspy.indexing.build import import_triples

    settings = options.settings_from(
        config,
        lm=lm,
        api_base=api_base,
        encoder=encoder,
        encoder_api_base=encoder_api_base,
        concurrency=concurrency,
    )
    with Bars(quiet=json) as bars:
        report = import_triples(
            path,
            out,
            settings=settings,
            progress=bars,
            random_questions=random_questions,
            limits=options.limits_from(max_calls, max_tokens, max_cost),
        )
    show_report(report, json=json)


class Format(StrEnum):
    parquet = "parquet"
    graphml = "graphml"
    jsonl = "jsonl"


def export(
    index_dir: options.IndexDir,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; for graphml, a file.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="parquet has GraphRAG's tables.")] = Format.parquet,
    json: options.Json = False,
) -> None:
    """Write the index as parquet tables in GraphRAG's column names, as GraphML, or as JSON lines."""
    from kraq_dspy.indexing.export import export_index

    written = export_index(index_dir, out, format.value)
    if json:
        print_json([str(path) for path in written])
    else:
        for path in written:
            output.print(str(path), highlight=False)
