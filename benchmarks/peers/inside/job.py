"""Reads what a system is to do and writes what came of it; needs nothing but the standard library.

A job names `articles` (JSON lines with id and text), `folder` (the system's own), `chat` and `embeddings` (addresses),
`in_flight`, `model` (its name), `chunks` (tokens and overlap, or null for the system's own), `options`; to retrieve
also `questions` (JSON lines), `mode` and `out`.
"""

import asyncio
import inspect
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Passages = list[str]
KEY = "not-needed"
CHAT_MODEL, EMBEDDING_MODEL, DIMENSION = "gpt-4o-mini", "text-embedding-3-small", 384


def run(**verbs: Callable[[dict[str, Any]], Any]) -> None:
    """Does what the command line says: a verb, and the file of a job. `load` imports what `index` imports, and no more,
    so that nothing is measured cold."""
    verb, path = sys.argv[1:]
    doing = verbs[verb](json.loads(Path(path).read_text("utf-8")))
    if inspect.iscoroutine(doing):
        asyncio.run(doing)


def read_articles(job: dict[str, Any]) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(job["articles"]).read_text("utf-8").splitlines()]


def write_counts(job: dict[str, Any], records: Sequence[int], levels: Sequence[int], failures: int) -> None:
    """`records` are the numbers of chunks, entities and relationships; `levels` has one entry for each community."""
    names = ("chunks", "entities", "relationships")
    sizes = [size for _, size in sorted(Counter(levels).items())]
    counts = {**dict(zip(names, records, strict=True)), "communities": sizes, "failures": failures}
    (Path(job["folder"]) / "counts.json").write_text(json.dumps(counts), "utf-8")


def write_graph(job: dict[str, Any], said_of: Mapping[str, Sequence[str]], links: Sequence[Sequence[str]]) -> None:
    """`said_of` has texts by the names of entities; `links` are (name, what is said of both, other name)."""
    descriptions = [(name, text, "") for name, texts in said_of.items() for text in texts]
    graph = {"names": list(said_of), "links": [*links, *descriptions]}
    (Path(job["folder"]) / "graph.json").write_text(json.dumps(graph), "utf-8")


def write_described_graph(job: dict[str, Any], graph: Any) -> None:
    """Of networkx, whose edges have descriptions; names lose the quotes that a model put around them."""
    links = [
        (source.strip('"'), edge.get("description", ""), target.strip('"'))
        for source, target, edge in graph.edges(data=True)
    ]
    write_graph(job, {name.strip('"'): [node.get("description", "")] for name, node in graph.nodes(data=True)}, links)


def logged_errors(path: Path) -> int:
    """Lines of a log that say ERROR or CRITICAL."""
    words = ("ERROR", "CRITICAL")
    return sum(any(word in line for word in words) for line in path.read_text("utf-8", "replace").splitlines())


def write_passages(job: dict[str, Any], passages: Callable[[str], Passages]) -> None:
    """Asks the questions one after the other, and writes what was retrieved for each, best first, and the seconds."""
    with Path(job["out"]).open("w", encoding="utf-8") as file:
        for question in _questions(job):
            start = time.monotonic()
            texts = passages(question["text"])
            _write(file, question["id"], texts, time.monotonic() - start)


async def awrite_passages(job: dict[str, Any], passages: Callable[[str], Awaitable[Passages]]) -> None:
    """`write_passages` for what is awaited."""
    with Path(job["out"]).open("w", encoding="utf-8") as file:
        for question in _questions(job):
            start = time.monotonic()
            texts = await passages(question["text"])
            _write(file, question["id"], texts, time.monotonic() - start)


def _questions(job: dict[str, Any]) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(job["questions"]).read_text("utf-8").splitlines()]


def _write(file: Any, question: str, texts: Passages, seconds: float) -> None:
    file.write(json.dumps({"question": question, "passages": texts, "seconds": seconds}) + "\n")
