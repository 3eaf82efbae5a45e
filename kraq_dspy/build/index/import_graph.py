"""Makes an index from a graph, or from triples, that another system extracted."""

from pathlib import Path
from typing import Unpack

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.build.index.build import Builder
from kraq_dspy.build.index.options import BuildOptions
from kraq_dspy.build.index.report import BuildReport
from kraq_dspy.records import Claim, Community, Entity, Extraction, Relationship, Summary


def import_graphrag(
    folder: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """Make an index from the output folder of Microsoft GraphRAG: its reports become summaries, and those questions.

    >>> import_graphrag("graphrag/output", "imported.kraq")  # doctest: +SKIP

    `replace` and `options` are those of `build_index`. Raises ExchangeError for tables or columns that are missing.
    """
    return run_coroutine(aimport_graphrag(folder, out, replace=replace, **options))


async def aimport_graphrag(
    folder: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """`import_graphrag` for asynchronous code; takes the same arguments."""
    from kraq_dspy.asset.graph.exchange.graphrag_in import read_graphrag  # brings pyarrow

    imported = read_graphrag(Path(folder))
    async with Builder.at(Path(out), options) as builder:
        index = builder.index
        builder.begin("graphrag", folder, imported.documents, replace=replace)
        builder.problems.extend(imported.problems)
        builder.keep_documents(imported.documents, imported.chunks)
        index.replace(Entity, imported.entities)
        index.replace(Relationship, imported.relationships)
        index.replace(Claim, imported.claims)
        index.replace(Community, imported.communities)
        index.replace(Summary, imported.summaries)
        await builder.embed_chunks()
        await builder.ask()
        return builder.report()


def import_triples(
    path: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """Make an index from passages whose triples were extracted elsewhere; summaries and questions are made here.

    >>> import_triples("triples.jsonl", "triples.kraq").counts["relationships"]
    1

    `replace` and `options` are those of `build_index`. Raises ExchangeError for columns that are missing.
    """
    return run_coroutine(aimport_triples(path, out, replace=replace, **options))


async def aimport_triples(
    path: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """`import_triples` for asynchronous code; takes the same arguments."""
    from kraq_dspy.asset.graph.exchange.triples_in import read_triples  # brings pyarrow

    imported = read_triples(Path(path))
    async with Builder.at(Path(out), options) as builder:
        builder.begin("triples", path, imported.documents, replace=replace)
        builder.problems.extend(imported.problems)
        builder.keep_documents(imported.documents, imported.chunks)
        builder.index.replace(Extraction, imported.extractions)
        await builder.embed_chunks()
        await builder.finish()
        return builder.report()
