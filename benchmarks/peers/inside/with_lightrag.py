"""Indexes and searches the articles with LightRAG; runs in LightRAG's own environment.

    python with_lightrag.py load|index|count|graph|retrieve JOB.json

LightRAG has 4 calls in flight and 2 documents at work unless it is told otherwise; it is told both here.
"""

import json
from pathlib import Path
from typing import Any

from job import (
    CHAT_MODEL,
    DIMENSION,
    EMBEDDING_MODEL,
    KEY,
    Passages,
    awrite_passages,
    read_articles,
    run,
    write_counts,
    write_described_graph,
)
from lightrag import LightRAG, QueryParam
from lightrag.llm.openai import openai_complete_if_cache, openai_embed
from lightrag.utils import EmbeddingFunc


async def opened(job: dict[str, Any]) -> LightRAG:
    async def chat(prompt: str, system_prompt: str | None = None, history_messages: Any = None, **options: Any) -> Any:
        return await openai_complete_if_cache(
            CHAT_MODEL,
            prompt,
            system_prompt=system_prompt,
            history_messages=history_messages or [],
            base_url=job["chat"],
            api_key=KEY,
            **options,
        )

    async def embed(texts: list[str], **_: Any) -> Any:
        return await openai_embed.func(texts, model=EMBEDDING_MODEL, base_url=job["embeddings"], api_key=KEY)

    chunks = dict(zip(("chunk_token_size", "chunk_overlap_token_size"), job["chunks"] or (), strict=False))
    rag = LightRAG(
        working_dir=str(Path(job["folder"]) / "store"),
        llm_model_func=chat,
        embedding_func=EmbeddingFunc(embedding_dim=DIMENSION, max_token_size=8192, func=embed),
        llm_model_max_async=job["in_flight"],
        max_parallel_insert=job["in_flight"],
        **chunks,
    )
    await rag.initialize_storages()
    return rag


async def index(job: dict[str, Any]) -> None:
    rag = await opened(job)
    articles = read_articles(job)
    await rag.ainsert([article["text"] for article in articles], file_paths=[article["id"] for article in articles])
    await rag.finalize_storages()


async def count(job: dict[str, Any]) -> None:
    rag = await opened(job)
    graph = await rag.chunk_entity_relation_graph._get_graph()
    statuses = _kept(job, "doc_status").values()
    failures = sum(str(document["status"]).lower() != "processed" for document in statuses)
    records = [len(_kept(job, "text_chunks")), graph.number_of_nodes(), graph.number_of_edges()]
    write_counts(job, records, levels=[], failures=failures)
    await rag.finalize_storages()


async def graph(job: dict[str, Any]) -> None:
    rag = await opened(job)
    write_described_graph(job, await rag.chunk_entity_relation_graph._get_graph())
    await rag.finalize_storages()


async def retrieve(job: dict[str, Any]) -> None:
    rag = await opened(job)

    async def passages(question: str) -> Passages:
        answer = await rag.aquery_data(question, param=QueryParam(mode=job["mode"], enable_rerank=False))
        return [chunk["content"] for chunk in answer.get("data", {}).get("chunks", [])]

    await awrite_passages(job, passages)
    await rag.finalize_storages()


def _kept(job: dict[str, Any], name: str) -> dict[str, Any]:
    [path] = (Path(job["folder"]) / "store").rglob(f"kv_store_{name}.json")
    stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return stored


if __name__ == "__main__":
    run(load=lambda job: None, index=index, count=count, graph=graph, retrieve=retrieve)
