"""Indexes and searches the articles with fast-graphrag; runs in fast-graphrag's own environment.

    python with_fast_graphrag.py load|index|count|graph|retrieve JOB.json

It has no communities. How many calls are in flight it reads from the environment (CONCURRENT_TASK_LIMIT).
"""

import json
from pathlib import Path
from typing import Any

import igraph
import instructor
from fast_graphrag import GraphRAG, QueryParam
from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService
from job import (
    CHAT_MODEL,
    DIMENSION,
    EMBEDDING_MODEL,
    KEY,
    Passages,
    awrite_passages,
    logged_errors,
    read_articles,
    run,
    write_counts,
    write_graph,
)

DOMAIN = "Analyse news articles: people, organisations, places, events and how they are linked."
EXAMPLES = "Who is accused of fraud by the prosecutors?\nWhich company do both reports name?"
TYPES = ["person", "organization", "geo", "event"]


def opened(job: dict[str, Any]) -> GraphRAG:
    chat = OpenAILLMService(model=CHAT_MODEL, base_url=job["chat"], api_key=KEY, mode=instructor.Mode.JSON)
    embed = OpenAIEmbeddingService(
        model=EMBEDDING_MODEL, base_url=job["embeddings"], api_key=KEY, embedding_dim=DIMENSION
    )
    rag = GraphRAG(
        working_dir=str(Path(job["folder"]) / "store"),
        domain=DOMAIN,
        example_queries=EXAMPLES,
        entity_types=TYPES,
        config=GraphRAG.Config(llm_service=chat, embedding_service=embed),
    )
    if job["chunks"]:
        service = rag.chunking_service
        service.config.chunk_token_size, service.config.chunk_token_overlap = job["chunks"]
        service.__post_init__()
    return rag


def index(job: dict[str, Any]) -> None:
    counts = opened(job).insert([article["text"] for article in read_articles(job)])
    (Path(job["folder"]) / "inserted.json").write_text(json.dumps(counts), "utf-8")


def count(job: dict[str, Any]) -> None:
    folder = Path(job["folder"])
    entities, relationships, chunks = json.loads((folder / "inserted.json").read_text("utf-8"))
    failures = logged_errors(folder / "index.log")
    write_counts(job, [chunks, entities, relationships], levels=[], failures=failures)


def graph(job: dict[str, Any]) -> None:
    [path] = (Path(job["folder"]) / "store").rglob("*igraph_data.pklz")
    stored = igraph.Graph.Read_Picklez(str(path))
    names = stored.vs["name"]
    links = [(names[edge.source], edge["description"], names[edge.target]) for edge in stored.es]
    write_graph(job, {vertex["name"]: [vertex["description"]] for vertex in stored.vs}, links)


async def retrieve(job: dict[str, Any]) -> None:
    rag = opened(job)

    async def passages(question: str) -> Passages:
        reply = await rag.async_query(question, params=QueryParam(only_context=True))
        return [chunk.content for chunk, _ in reply.context.chunks]

    await rag.state_manager.query_start()
    await awrite_passages(job, passages)
    await rag.state_manager.query_done()


if __name__ == "__main__":
    run(load=lambda job: None, index=index, count=count, graph=graph, retrieve=retrieve)
