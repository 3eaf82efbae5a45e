"""Indexes and searches the articles with this library, as a user of its command line does.

python with_kraq.py load|index|count|graph|retrieve JOB.json
"""

import sys
from pathlib import Path
from typing import Any

from job import Passages, run, write_counts, write_graph, write_passages

SETTINGS = """{preset}
[run]
concurrency = {in_flight}
[roles.default]
model = "hosted_vllm/{model}"
api_base = "{chat}"
[encoder]
name = "stand-in"
api_base = "{embeddings}"
"""


def load(job: dict[str, Any]) -> None:
    import kraq_dspy.apps.cli  # noqa: F401


def index(job: dict[str, Any]) -> None:
    from kraq_dspy.apps.cli import main

    sys.argv = ["kraq", "index", job["articles"], "--out", f"{job['folder']}/index.kraq"]
    sys.argv += ["--config", str(settings_of(job)), "--json"]
    main()


def settings_of(job: dict[str, Any]) -> Path:
    """The file of settings, written anew: a kept index may be asked when its servers are elsewhere."""
    path = Path(job["folder"]) / "kraq.toml"
    preset = f'preset = "{job["options"]["preset"]}"' if "preset" in job["options"] else ""
    path.write_text(SETTINGS.format(preset=preset, **job), "utf-8")
    return path


def count(job: dict[str, Any]) -> None:
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.records import Chunk, Community, Entity, Failure, Relationship

    with Index.open(Path(job["folder"]) / "index.kraq") as index:
        levels = [community.level for community in index.all(Community)]
        records = [index.count(kind) for kind in (Chunk, Entity, Relationship)]
        write_counts(job, records, levels, failures=index.count(Failure))


def graph(job: dict[str, Any]) -> None:
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.records import Claim, Entity, Relationship

    with Index.open(Path(job["folder"]) / "index.kraq") as index:
        names = {entity.id: entity.name for entity in index.all(Entity)}
        said_of = {entity.name: [entity.description] for entity in index.all(Entity)}
        for claim in index.all(Claim):
            said_of[names[claim.entity_id]].append(claim.statement)
        links = [
            (names[link.source_id], f"{link.predicate} {link.description}", names[link.target_id])
            for link in index.all(Relationship)
        ]
        write_graph(job, said_of, links)


def retrieve(job: dict[str, Any]) -> None:
    from kraq_dspy import Workspace
    from kraq_dspy.settings import read_settings

    settings = read_settings(settings_of(job))
    with Workspace.open(Path(job["folder"]) / "index.kraq", settings=settings) as space:
        retriever = space.retriever(job["mode"])

        def passages(question: str) -> Passages:
            return [hit.chunk.text for hit in retriever(question, k=20)]

        write_passages(job, passages)


if __name__ == "__main__":
    run(load=load, index=index, count=count, graph=graph, retrieve=retrieve)
