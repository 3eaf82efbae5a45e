"""Indexes and searches the articles with Microsoft's GraphRAG; runs in GraphRAG's own environment.

    python with_graphrag.py load|index|count|graph|retrieve JOB.json

`{"braked": false}` among the options takes two brakes off: each workflow runs under tracemalloc, and the key of each
cached call is a YAML dump of the prompt by the dumper that is written in Python.
"""

import functools
import os
import tracemalloc
from pathlib import Path
from typing import Any

import yaml
from job import (
    CHAT_MODEL,
    DIMENSION,
    EMBEDDING_MODEL,
    Passages,
    read_articles,
    run,
    write_counts,
    write_graph,
    write_passages,
)

LEVEL, ANSWER = 2, "Multiple Paragraphs"  # as `graphrag query` has them


def load(job: dict[str, Any]) -> None:
    import graphrag.cli.main  # noqa: F401


def index(job: dict[str, Any]) -> None:
    if not job["options"].get("braked", True):
        take_brakes_off()
    from graphrag.cli.main import app

    root = Path(job["folder"]) / "project"
    init = ["init", "--root", str(root), "--model", CHAT_MODEL, "--embedding", EMBEDDING_MODEL, "--force"]
    app(init, standalone_mode=False)
    configure(root / "settings.yaml", job)
    for article in read_articles(job):
        (root / "input").mkdir(exist_ok=True)
        (root / "input" / f"{article['id']}.txt").write_text(article["text"], "utf-8")
    app(["index", "--root", str(root), "--method", "standard"])


def take_brakes_off() -> None:
    tracemalloc.start = lambda *_: None
    tracemalloc.stop = lambda: None
    tracemalloc.get_traced_memory = lambda: (0, 0)
    tracemalloc.get_tracemalloc_memory = lambda: 0
    yaml.dump = functools.partial(yaml.dump, Dumper=yaml.CDumper)


def configure(path: Path, job: dict[str, Any]) -> None:
    settings = yaml.safe_load(path.read_text("utf-8"))
    settings["completion_models"]["default_completion_model"]["api_base"] = job["chat"]
    settings["embedding_models"]["default_embedding_model"]["api_base"] = job["embeddings"]
    settings["concurrent_requests"] = job["in_flight"]
    settings["vector_store"]["vector_size"] = DIMENSION
    if job["chunks"]:
        settings["chunking"]["size"], settings["chunking"]["overlap"] = job["chunks"]
    path.write_text(yaml.safe_dump(settings), "utf-8")
    (path.parent / ".env").write_text("GRAPHRAG_API_KEY=not-needed\n", "utf-8")


def count(job: dict[str, Any]) -> None:
    import pandas

    output = Path(job["folder"]) / "project" / "output"
    tables = {path.stem: pandas.read_parquet(path) for path in output.glob("*.parquet")}
    records = [len(tables[name]) for name in ("text_units", "entities", "relationships")]
    log = Path(job["folder"]) / "project" / "logs" / "indexing-engine.log"
    failures = sum(" - ERROR - " in line for line in log.read_text("utf-8", "replace").splitlines())
    write_counts(job, records, [int(level) for level in tables["communities"]["level"]], failures)


def graph(job: dict[str, Any]) -> None:
    import pandas

    output = Path(job["folder"]) / "project" / "output"
    entities, links = (pandas.read_parquet(output / f"{name}.parquet") for name in ("entities", "relationships"))
    columns = (links[name].astype(str) for name in ("source", "description", "target"))
    said_of = {str(name): [str(text)] for name, text in zip(entities["title"], entities["description"], strict=True)}
    write_graph(job, said_of, list(zip(*columns, strict=True)))


def retrieve(job: dict[str, Any]) -> None:
    """Builds the context of a question as the search does, and leaves out the call that answers from it."""
    import graphrag.query.factory as factory
    import graphrag.query.indexer_adapters as adapters
    import pandas
    from graphrag.config.embeddings import entity_description_embedding, text_unit_text_embedding
    from graphrag.config.load_config import load_config
    from graphrag.utils.api import get_embedding_store

    root = Path(job["folder"]) / "project"
    os.chdir(root)
    configure(root / "settings.yaml", job)  # the servers may be elsewhere than when it was indexed
    config = load_config(root_dir=root)
    tables = {path.stem: pandas.read_parquet(path) for path in (root / "output").glob("*.parquet")}
    texts = adapters.read_indexer_text_units(tables["text_units"])
    if job["mode"] == "basic":
        store = get_embedding_store(config=config.vector_store, embedding_name=text_unit_text_embedding)
        engine = factory.get_basic_search_engine(
            config=config, text_units=texts, text_unit_embeddings=store, response_type=ANSWER
        )
    else:
        store = get_embedding_store(config=config.vector_store, embedding_name=entity_description_embedding)
        reports, communities = tables["community_reports"], tables["communities"]
        engine = factory.get_local_search_engine(
            config=config,
            reports=adapters.read_indexer_reports(reports, communities, LEVEL),
            text_units=texts,
            entities=adapters.read_indexer_entities(tables["entities"], communities, LEVEL),
            relationships=adapters.read_indexer_relationships(tables["relationships"]),
            covariates={"claims": []},
            description_embedding_store=store,
            response_type=ANSWER,
        )

    def passages(question: str) -> Passages:
        context = engine.context_builder.build_context(query=question, **engine.context_builder_params)
        return [str(text) for text in context.context_records["sources"]["text"]]

    write_passages(job, passages)


if __name__ == "__main__":
    run(load=load, index=index, count=count, graph=graph, retrieve=retrieve)
