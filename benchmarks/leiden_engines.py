"""Compares the engines of Leiden, graspologic-native and igraph: modularity, levels, time, and what retrieval finds.

    python benchmarks/leiden_engines.py hotpotqa musique squad multihop_rag --data ../shared/data --out runs/leiden

For each set: one index of a part of its corpus by the embedded model, then the same index with its communities found
anew by the other engine. Only questions of communities differ, so `combined` may find something else, and `adaptive`,
which reads no communities, must not. `--out` keeps a JSON file for each set, which a second run prints.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import igraph
import numpy as np
from parts import part_of

from kraq_dspy import Workspace, build_index, update_index
from kraq_dspy.asset.graph.communities import communities_at, find_communities
from kraq_dspy.asset.graph.numbered_graph import NumberedGraph
from kraq_dspy.asset.graph.partition import membership
from kraq_dspy.asset.store.index import Index
from kraq_dspy.eval import bootstrap_difference, load_dataset, recall_at_k
from kraq_dspy.eval.datasets import Example
from kraq_dspy.records import Community, Entity, Question, Relationship
from kraq_dspy.settings import CommunitySettings, Settings

ENGINES = ("graspologic", "igraph")
REPEATS = 10


def modularity(entities: Sequence[Entity], relationships: Sequence[Relationship], labels: Mapping[str, int]) -> float:
    graph = NumberedGraph(entities, relationships)
    part = graph.everything()
    peer = igraph.Graph(n=len(part.nodes), edges=np.column_stack([part.sources, part.targets]))
    return float(peer.modularity([labels[each.id] for each in graph.entities], weights=graph.weights.tolist()))


def processor_ms(work: Callable[[], object]) -> float:
    """Of the process, the least of `REPEATS` times: others use the machine, too."""
    times = []
    for _ in range(REPEATS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times) * 1000


def of_graph(index: Index, engine: str) -> dict[str, Any]:
    entities, relationships = list(index.all(Entity)), list(index.all(Relationship))
    settings = CommunitySettings(engine=engine, by_document=False)
    found = find_communities(entities, relationships, settings)
    graph = NumberedGraph(entities, relationships)
    part = graph.everything()
    level_0 = [
        modularity(
            entities,
            relationships,
            dict(
                zip(
                    (each.id for each in graph.entities),
                    membership(part, graph.weights, settings, f"{seed} ").tolist(),
                    strict=True,
                )
            ),
        )
        for seed in range(REPEATS)
    ]
    finest = communities_at(found, settings.max_depth)
    labels = {id: number for number, community in enumerate(finest) for id in community.entity_ids}
    return {
        "entities": len(entities),
        "relationships": len(relationships),
        "modularity of level 0": float(np.mean(level_0)),
        "modularity of the leaves": modularity(entities, relationships, labels),
        "levels": max(each.level for each in found) + 1,
        "communities by level": dict(sorted(Counter(each.level for each in found).items())),
        "level 0, ms": processor_ms(lambda: membership(part, graph.weights, settings, "0 ")),
        "all levels, ms": processor_ms(lambda: find_communities(entities, relationships, settings)),
    }


def recalls(path: Path, examples: Sequence[Example], k: int) -> dict[str, list[float]]:
    with Workspace.open(path) as space:
        found = {}
        for name in ("combined", "adaptive"):
            retriever = space.retriever(name)
            found[name] = [
                recall_at_k(each.supporting_ids, [hit.chunk.document_id for hit in retriever(each.question, k)], k)
                for each in examples
            ]
        return found


def measure(name: str, data: Path, out: Path, *, questions: int, passages: int) -> dict[str, Any]:
    part = part_of(load_dataset(name, data), questions=questions, passages=passages)
    path = out / f"{name}.kraq"
    row: dict[str, Any] = {"passages": len(part.documents), "questions": len(part.examples)}
    for engine in ENGINES:
        settings = replace(Settings(), communities=CommunitySettings(engine=engine))
        if path.exists():
            update_index(path, part.documents, settings=settings)
        else:
            build_index(part.documents, path, settings=settings)
        with Index.open(path) as index:
            row[engine] = of_graph(index, engine)
            row[engine]["communities"] = index.count(Community)
            row[engine]["KRAQ questions"] = index.count(Question)
        row[engine]["recall@10"] = recalls(path, part.examples, 10)
    (out / f"{name}.json").write_text(json.dumps(row), "utf-8")
    return row


def show(name: str, row: Mapping[str, Any]) -> None:
    new, old = (row[engine] for engine in ENGINES)
    print(f"\n{name}: {row['passages']} passages, {row['questions']} questions; " + " and ".join(ENGINES))
    for key in new:
        if key != "recall@10":
            print(f"  {key}: {_text(new[key])} and {_text(old[key])}")
    print(f"  time, ratio: {new['all levels, ms'] / old['all levels, ms']:.2f}")
    for system in new["recall@10"]:
        first, second = new["recall@10"][system], old["recall@10"][system]
        interval = bootstrap_difference(first, second)
        print(f"  recall@10 of {system}: {np.mean(first):.3f} and {np.mean(second):.3f}; difference {interval}")


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.dataset:
        kept = options.out / f"{name}.json"
        row = (
            json.loads(kept.read_text("utf-8"))
            if kept.is_file()
            else measure(name, options.data, options.out, questions=options.questions, passages=options.passages)
        )
        show(name, row)


if __name__ == "__main__":
    main()
