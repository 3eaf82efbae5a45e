"""Indexes a corpus by its words and vectors alone: no model is asked, and the graph can be added later."""

from collections.abc import Iterable
from pathlib import Path
from typing import Unpack

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.indexing.index import opening
from kraq_dspy.indexing.index.build import Builder
from kraq_dspy.indexing.index.report import BuildOptions
from kraq_dspy.records import Document


def build_vectors(
    corpus: str | Path | Iterable[Document | str], out: str | Path, **options: Unpack[BuildOptions]
) -> None:
    """Make the index `out` without a graph; `build_index` with the same arguments adds one.

    >>> from kraq_dspy import Workspace
    >>> build_vectors(["Ada Lovelace met Charles Babbage in London."], "vectors.kraq")
    >>> with Workspace.open("vectors.kraq") as space:
    ...     space.default_retriever, len(space.retriever()("Who met Babbage?", 3))
    ('dense', 1)

    It takes the arguments of `build_index`, and raises as that does. Interrupted, the same call goes on.
    """
    run_coroutine(_abuild_vectors(corpus, Path(out), options))


async def _abuild_vectors(corpus: str | Path | Iterable[Document | str], out: Path, options: BuildOptions) -> None:
    settings, labels = options.get("settings"), options.get("labels")
    items = list(opening.documents_of(corpus, settings, labels=labels))
    async with Builder.at(out, options, corpus) as builder:
        builder.begin(corpus, builder.as_before(items, corpus), replace=False)
        builder.load(builder.as_before(items, corpus))
        await builder.embed_chunks()
        builder.index.update_manifest(complete=True, settings=builder.settings, models=builder.models.names())
