"""Indexes and searches the articles with nano-graphrag; runs in nano-graphrag's own environment.

    python with_nano_graphrag.py load|index|count|graph|retrieve JOB.json

Its own function for embeddings takes no other dimension than 1,536, so it is given one that does the same.
"""

import json
import re
from pathlib import Path
from typing import Any

import networkx
import numpy as np
from job import (
    DIMENSION,
    EMBEDDING_MODEL,
    KEY,
    Passages,
    read_articles,
    run,
    write_counts,
    write_described_graph,
    write_passages,
)
from nano_graphrag import GraphRAG, QueryParam
from nano_graphrag._utils import wrap_embedding_func_with_attrs
from openai import AsyncOpenAI

ROW = re.compile(r'\n"?\d+"?,\t"')  # its tables leave quotes and line ends in a text as they are


def opened(job: dict[str, Any]) -> GraphRAG:
    client = AsyncOpenAI(base_url=job["embeddings"], api_key=KEY)

    @wrap_embedding_func_with_attrs(embedding_dim=DIMENSION, max_token_size=8192)
    async def embed(texts: list[str]) -> np.ndarray:
        reply = await client.embeddings.create(model=EMBEDDING_MODEL, input=texts, encoding_format="float")
        return np.array([row.embedding for row in reply.data])

    chunks = dict(zip(("chunk_token_size", "chunk_overlap_token_size"), job["chunks"] or (), strict=False))
    return GraphRAG(
        working_dir=str(Path(job["folder"]) / "store"),
        embedding_func=embed,
        best_model_max_async=job["in_flight"],
        cheap_model_max_async=job["in_flight"],
        enable_naive_rag=True,
        **chunks,
    )


def index(job: dict[str, Any]) -> None:
    opened(job).insert([article["text"] for article in read_articles(job)])


def count(job: dict[str, Any]) -> None:
    store = Path(job["folder"]) / "store"
    [path] = store.glob("*.graphml")
    graph = networkx.read_graphml(path)
    reports = json.loads((store / "kv_store_community_reports.json").read_text("utf-8"))
    chunks = json.loads((store / "kv_store_text_chunks.json").read_text("utf-8"))
    levels = [int(report["level"]) for report in reports.values()]
    empty = sum(not report["report_string"].strip() for report in reports.values())
    write_counts(job, [len(chunks), graph.number_of_nodes(), graph.number_of_edges()], levels, failures=empty)


def graph(job: dict[str, Any]) -> None:
    [path] = (Path(job["folder"]) / "store").glob("*.graphml")
    write_described_graph(job, networkx.read_graphml(path))


def retrieve(job: dict[str, Any]) -> None:
    rag = opened(job)

    def passages(question: str) -> Passages:
        context = rag.query(question, param=QueryParam(mode=job["mode"], only_need_context=True))
        if job["mode"] == "naive":
            return str(context).split("--New Chunk--\n")
        table = str(context).split("-----Sources-----")[1].split("```csv")[1].rsplit("```", 1)[0].strip()
        return [text.removesuffix('"') for text in ROW.split(table)[1:]]

    write_passages(job, passages)


if __name__ == "__main__":
    run(load=lambda job: None, index=index, count=count, graph=graph, retrieve=retrieve)
