"""Measures what it costs to add documents to an index, beside a rebuild: model calls for 1 % more documents.

    python benchmarks/updates.py [--data ../shared/data] [--share 0.01] [--dataset NAME ...] [--json]

An index of all but the last `share` of the documents (drawn by a seed), to which those are added; then the whole corpus
indexed anew. Answers come from the stand-in server, which counts; at most 5 % of a rebuild's calls is the goal.
"""

import argparse
import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from stand_in import StandIn, machine, stand_in

from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.index.change import add_documents
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings

DATASETS = {"multihop_rag": "chunks.jsonl.gz", "hotpotqa": "corpus.jsonl.gz"}

SAME = ("documents", "chunks", "entities", "relationships", "claims")


def documents(data: Path, name: str, seed: int) -> list[Document]:
    with gzip.open(data / name / DATASETS[name], "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(seed).shuffle(rows)
    return [Document(row["id"], row["title"], row["text"]) for row in rows]


def measure(corpus: list[Document], share: float, server: StandIn) -> dict[str, Any]:
    settings = Settings(
        encoder=EncoderSettings(name="stand-in", api_base=server.url),
        run=RunSettings(concurrency=32),
        roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url)},
    )
    later = max(1, round(len(corpus) * share))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grows.kraq"
        build_index(corpus[later:], path, settings=settings)
        server.reset()
        added = add_documents(path, corpus[:later], settings=settings)
        add_calls = server.stats()["requests"]
        server.reset()
        rebuilt = build_index(corpus, Path(folder) / "new.kraq", settings=settings)
        all_calls = server.stats()["requests"]
    return {
        "documents": len(corpus),
        "added": later,
        "calls": add_calls,
        "calls_of_a_rebuild": all_calls,
        "share_of_calls": add_calls / all_calls,
        "by_stage": {
            stage: [added.usage[stage].calls if stage in added.usage else 0, used.calls]
            for stage, used in rebuilt.usage.items()
        },
        "as_rebuilt": {name: added.counts[name] == rebuilt.counts[name] for name in SAME},
        "problems": list(added.problems),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dataset", action="append", choices=sorted(DATASETS), help="default: all")
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with stand_in(latency_ms=0) as server:
        results = {
            name: measure(documents(options.data, name, options.seed), options.share, server)
            for name in options.dataset or sorted(DATASETS)
        }
    if options.json:
        print(json.dumps({"machine": machine(), "model": "stand-in server", "results": results}, indent=2))
        return
    print(machine())
    for name, figures in results.items():
        print(
            f"{name}: {figures['added']} of {figures['documents']} documents added for {figures['calls']} calls, "
            f"{figures['share_of_calls']:.1%} of a rebuild's {figures['calls_of_a_rebuild']} (goal: 5 %); "
            f"by stage {figures['by_stage']}; as many as rebuilt: {figures['as_rebuilt']}"
        )


if __name__ == "__main__":
    main()
