"""`kraq add`, `remove`, `update` and `resume`: an index follows its corpus; only what changed is done again."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kraq_dspy.cli import options
from kraq_dspy.cli.build import show_report
from kraq_dspy.cli.terminal import Bars

if TYPE_CHECKING:
    from kraq_dspy.records import Document, Failure


def add(
    index_dir: options.IndexDir,
    files: Annotated[list[Path], typer.Argument(help="Files or folders, of the kinds that `kraq index` reads.")],
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Add documents; those with a known id (the file's name, or the id of its row) replace what was there."""
    from kraq_dspy.indexing.change import add_documents

    with Bars(quiet=json) as bars:
        report = add_documents(
            index_dir,
            _loaded(files),
            **_options(index_dir, config, lm, api_base, concurrency, max_calls, max_tokens, max_cost),
            progress=bars,
        )
    show_report(report, json=json)


def remove(
    index_dir: options.IndexDir,
    document_ids: Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of documents.")],
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Remove documents, with all that was made from them alone."""
    from kraq_dspy.indexing.change import remove_documents

    with Bars(quiet=json) as bars:
        report = remove_documents(
            index_dir,
            document_ids,
            **_options(index_dir, config, lm, api_base, concurrency, max_calls, max_tokens, max_cost),
            progress=bars,
        )
    show_report(report, json=json)


def update(
    index_dir: options.IndexDir,
    corpus: Annotated[Path, typer.Argument(help="The corpus as it is now: a file or a folder.")],
    recluster: Annotated[
        bool, typer.Option("--recluster", help="Find the communities anew, at the price of about half their questions.")
    ] = False,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Bring the index up to date with a corpus: what is new comes in, what changed is done again, the rest goes."""
    from kraq_dspy.indexing.change import update_index

    with Bars(quiet=json) as bars:
        report = update_index(
            index_dir,
            corpus,
            recluster=recluster,
            **_options(index_dir, config, lm, api_base, concurrency, max_calls, max_tokens, max_cost),
            progress=bars,
        )
    show_report(report, json=json)


def resume(
    index_dir: options.IndexDir,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Go on with an interrupted build, and try again what failed."""
    from kraq_dspy.indexing.change import resume_index

    with Bars(quiet=json) as bars:
        report = resume_index(
            index_dir,
            **_options(index_dir, config, lm, api_base, concurrency, max_calls, max_tokens, max_cost),
            progress=bars,
        )
    show_report(report, json=json)


def _options(
    index_dir: Path,
    config: Path | None,
    lm: str | None,
    api_base: str | None,
    concurrency: int | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
) -> dict[str, Any]:
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:
        made_with = index.manifest.settings
    settings = options.settings_from(config, base=made_with, lm=lm, api_base=api_base, concurrency=concurrency)
    return {"settings": settings, "limits": options.limits_from(max_calls, max_tokens, max_cost)}


def _loaded(files: list[Path]) -> "Iterator[Document | Failure]":
    from kraq_dspy.corpus.load import load_documents

    for file in files:
        yield from load_documents(file)
