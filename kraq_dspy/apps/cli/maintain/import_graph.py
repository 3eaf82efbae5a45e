"""Makes an index of another system's graph: `kraq import`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Builds, Json, Limits, RandomQuestions
from kraq_dspy.apps.cli.shared.report import run_build
from kraq_dspy.apps.cli.start.index import Replace, index_beside

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="The index folder to write. Default: the source's name + .kraq"),
]


def graphrag(
    folder: Annotated[Path, typer.Argument(help="GraphRAG's output folder: parquet files, any version.")],
    builds: Builds,
    limits: Limits,
    out: Out = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Reports become summaries, then questions; nothing is extracted again."""
    from kraq_dspy.build.index.import_graph import import_graphrag

    settings = builds.settings()
    imported = partial(import_graphrag, folder, out or index_beside(folder), replace=replace)
    run_build(imported, settings, limits, json=json)


def triples(
    path: Annotated[
        Path,
        typer.Argument(help="A folder with corpus and triples files, or one file with passages and their triples."),
    ],
    builds: Builds,
    limits: Limits,
    out: Out = None,
    replace: Replace = False,
    random_questions: RandomQuestions = False,
    json: Json = False,
) -> None:
    """Passages with triples extracted elsewhere; summaries and questions are made here."""
    from kraq_dspy.build.index.import_graph import import_triples

    settings = builds.settings()
    out = out or index_beside(path)
    imported = partial(import_triples, path, out, replace=replace, random_questions=random_questions)
    run_build(imported, settings, limits, json=json)
