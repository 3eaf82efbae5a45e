"""`kraq catalogue seed` and `synthesize`: entries that a model makes offline."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.catalogue import By, user
from kraq_dspy.cli.terminal import Bars, errors, output, print_json, short, two_columns

if TYPE_CHECKING:
    from kraq_dspy.lms.meter import Limits
    from kraq_dspy.workspace import Workspace

Approve = Annotated[bool, typer.Option("--approve", help="Serve the answers at once, without review.")]


def seed(
    index_dir: options.IndexDir,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N new questions.")] = None,
    approve: Approve = False,
    program: Annotated[
        str, typer.Option("--program", "-p", help="What answers them; see kraq ask --help.")
    ] = "combined",
    retriever: Annotated[
        str, typer.Option("--retriever", help="What finds the passages; see kraq ask --help.")
    ] = "dense",
    by: By = None,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Answer the index's representative questions, and keep the answers for review.

    Run it again to go on after an interruption, or after the index has grown: what is there is not asked again.
    """
    from kraq_dspy.catalogue.seed import seed_answers
    from kraq_dspy.catalogue.store import CATALOGUE, Catalogue
    from kraq_dspy.errors import ConfigError

    if program == "qa-search":
        raise ConfigError("QA search answers from the catalogue; seed it with the program behind: combined, ...")
    limits = options.limits_from(max_calls, max_tokens, max_cost)
    with workspace(index_dir, config, lm, api_base, concurrency, limits) as space:
        answering = space.program(program, retriever)
        entries = Catalogue(space.index.path / CATALOGUE)
        try:
            with Bars(quiet=json) as bars:
                report = seed_answers(
                    space.index, entries, answering, space.models,
                    by=by or user(), limit=limit, approve=approve, progress=bars,
                )  # fmt: skip
        finally:
            entries.close()
    if json:
        print_json(report)
    else:
        rows = {
            "questions": report.questions,
            "there already": report.known,
            "answered": report.answered,
            "not answered": report.unanswered,
            "failed": len(report.failures),
            "calls": report.calls,
        }
        title = f"{index_dir} in {report.seconds:.1f} s"
        output.print(two_columns(title, {name: f"{count:,}" for name, count in rows.items()}))
        for failure in report.failures[:10]:
            errors.print(Text("failed: ", style="yellow") + short(failure.reason, 240))
        waiting = report.unanswered + (0 if approve else report.answered)
        if waiting:
            output.print(f"{waiting:,} wait for review: kraq catalogue review {escape(str(index_dir))}")


def synthesize(
    index_dir: options.IndexDir,
    audience: Annotated[
        str | None, typer.Option("--audience", metavar="TEXT", help="Who will ask; a critic judges relevance to them.")
    ] = None,
    chunk_tokens: Annotated[int, typer.Option("--chunk-tokens", min=1, help="Of the passages asked about.")] = 2000,
    overlap: Annotated[int, typer.Option("--overlap", min=0, help="Tokens that neighbours share.")] = 200,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only N passages, spread evenly.")
    ] = None,
    keep: Annotated[
        int, typer.Option("--keep", min=1, max=5, help="Keep what all three critics rate so, of 5, or better.")
    ] = 5,
    approve: Approve = False,
    by: By = None,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Make a question and its answer from each passage of the documents, and keep those that three critics let pass:
    is it answered there, does anybody ask it, can it be understood alone?

    Written by the role generator, judged by the role judge. Run it again to go on; nothing is asked twice.
    """
    from kraq_dspy.catalogue.store import CATALOGUE, Catalogue
    from kraq_dspy.catalogue.synthesize import AUDIENCE, make_synthetic_pairs
    from kraq_dspy.config import ChunkSettings
    from kraq_dspy.errors import ConfigError

    if audience is not None and not audience.strip():
        raise ConfigError("--audience is empty; say who is to be answered.")
    chunks = ChunkSettings(chunk_tokens, overlap)
    limits = options.limits_from(max_calls, max_tokens, max_cost)
    with workspace(index_dir, config, lm, api_base, concurrency, limits, write=True) as space:
        entries = Catalogue(space.index.path / CATALOGUE)
        try:
            with Bars(quiet=json) as bars:
                report = make_synthetic_pairs(
                    space.index, entries, space.models, by=by or user(), audience=audience or AUDIENCE, least=keep,
                    chunks=chunks, limit=limit, approve=approve, progress=bars,
                )  # fmt: skip
        finally:
            entries.close()
    if json:
        print_json(report)
        return
    rows = {
        "passages": report.chunks,
        "pairs": report.pairs,
        **{f"rejected for {name.replace('_', ' ')}": count for name, count in report.rejected.items()},
        "added": report.added,
        "there already": report.known,
        "another answer is there": report.conflicts,
        "without a pair": report.empty,
        "failed": report.failures,
        "calls": report.calls,
    }
    title = f"{index_dir} in {report.seconds:.1f} s"
    output.print(two_columns(title, {name: f"{count:,}" for name, count in rows.items()}))
    if report.added and not approve:
        output.print(f"{report.added:,} wait for review: kraq catalogue review {escape(str(index_dir))}")
    if report.failures:
        errors.print(f"What failed, and why: kraq status {escape(str(index_dir))}; run it again to try once more.")


@contextmanager
def workspace(
    index_dir: Path,
    config: Path | None,
    lm: str | None,
    api_base: str | None,
    concurrency: int | None,
    limits: "Limits | None",
    *,
    write: bool = False,
) -> "Iterator[Workspace]":
    """The index with its encoder and models that keep to the limits."""
    import dataclasses

    from kraq_dspy.embedders import load_embedder
    from kraq_dspy.lms.meter import Meter, prices_of
    from kraq_dspy.lms.roles import LanguageModels
    from kraq_dspy.stores.index import Index
    from kraq_dspy.workspace import Workspace

    with Index.open(index_dir) as index:
        made_with = index.manifest.settings
    settings = options.settings_from(config, base=made_with, lm=lm, api_base=api_base, concurrency=concurrency)
    if limits is not None:
        limits = dataclasses.replace(limits, prices={**prices_of(settings), **limits.prices})
    embedder = load_embedder(settings.encoder)
    models = LanguageModels(settings, embedder=embedder, meter=Meter(limits))
    with Workspace.open(index_dir, settings=settings, embedder=embedder, models=models, write=write) as space:
        yield space
