"""Leads from a corpus to representative questions: `kraq index`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Columns, CorpusBuilds, Json, Limits, ProgramStates, RandomQuestions
from kraq_dspy.apps.cli.shared.report import run_build
from kraq_dspy.apps.cli.shared.terminal import command, say
from kraq_dspy.errors import ConfigError, RemovedDocumentsError

Replace = Annotated[
    bool, typer.Option("--replace", help="Let this corpus take the place of documents in DIR that it lacks.")
]


def index(
    corpus: Annotated[Path, typer.Argument(help="A file or folder of txt, md, html, pdf, jsonl, csv or parquet.")],
    builds: CorpusBuilds,
    limits: Limits,
    columns: Columns,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The index folder to write. Default: CORPUS's name + .kraq"),
    ] = None,
    random_questions: RandomQuestions = False,
    program_state: ProgramStates = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Index CORPUS: graph, communities, summaries, and a question for each community.

    Run it again to go on after an interruption, to retry what failed, or to bring the index up to date with the corpus.
    """
    from kraq_dspy.build.index.build import build_index

    settings = columns.over(builds.settings())
    out = out or index_beside(corpus)
    build = partial(build_index, corpus, out, random_questions=random_questions, program_states=program_state or ())
    try:
        run_build(partial(build, replace=replace), settings, limits, json=json)
    except RemovedDocumentsError as error:
        if json or not sys.stdin.isatty():
            raise
        typer.echo(str(error), err=True)
        if not typer.confirm("Remove them?", err=True):
            raise typer.Exit(1) from None
        run_build(partial(build, replace=True), settings, limits, json=json)
    if not json:
        say("Try: ", (command("questions", out), "bold"), " or ", (command("ask", out, "YOUR QUESTION"), "bold"))


def index_beside(corpus: Path) -> Path:
    """Where the index of a corpus goes unless --out says: into the current folder, or beside a corpus that holds it.

    Raises ConfigError where the index of another corpus lies there.
    """
    source = corpus.resolve()
    name = f"{source.name if source.is_dir() else source.name.split('.')[0] or source.name}.kraq"
    out = source.parent / name if Path.cwd().is_relative_to(source) else Path(name)
    if (out / "manifest.json").is_file():
        from kraq_dspy.asset.store.index import Index

        with Index.open(out, unfinished=True) as there:
            origin = there.manifest.origin.get("path")
        if origin != str(source):
            raise ConfigError(
                f"{str(out)!r} is the index of {origin or 'something else'!r}. Name another folder with --out."
            )
    return out
