"""Shows how near `kraq estimate` comes to what an index then used.

    python benchmarks/estimates.py [--data ../shared/data] [--json]

The bundled passages with the embedded model, and the text of multihop_rag with the stand-in server: the estimate of
the corpus, the estimate of the index once all extractions are there (its later stages), and what was asked in the end.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from indexing import one_text
from stand_in import machine, stand_in

from kraq_dspy.config import EncoderSettings, RoleSettings, Settings
from kraq_dspy.corpus.load import load_documents
from kraq_dspy.errors import BudgetExceededError
from kraq_dspy.indexing.build import build_index
from kraq_dspy.indexing.estimate import Estimate, estimate_corpus, estimate_index
from kraq_dspy.lms.meter import Limits
from kraq_dspy.records import Document

DEMO = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini" / "corpus.jsonl"
LATER = ("describe", "summarize", "ask")


def by_stage(estimate: Estimate) -> dict[str, tuple[int, int, int]]:
    return {
        stage.stage: (stage.expected.calls, stage.expected.prompt_tokens, stage.expected.completion_tokens)
        for stage in estimate.stages
    }


def measure(documents: list[Document], settings: Settings) -> dict[str, Any]:
    before = estimate_corpus(documents, settings)
    extractions = {stage.stage: stage for stage in before.stages}["extract"].expected.calls
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "i.kraq"
        try:
            build_index(documents, path, settings=settings, limits=Limits(max_calls=extractions))
        except BudgetExceededError:
            midway = by_stage(estimate_index(path, settings))
        build_index(documents, path, settings=settings)
        used = build_index(documents, path, settings=settings)  # asks nothing: what was paid stands in the ledger
        assert not used.usage
        from kraq_dspy.stores.index import Index

        with Index.open(path) as index:
            ledger = {stage: usage for (stage, _), usage in index.results.usage().items()}
    spent = {stage: (u.calls, u.prompt_tokens, u.completion_tokens) for stage, u in ledger.items()}
    return {"before": by_stage(before), "after_extraction": {s: midway[s] for s in LATER}, "spent": spent}


def errors(estimated: dict[str, tuple[int, int, int]], spent: dict[str, tuple[int, int, int]]) -> str:
    parts = []
    for number, name in enumerate(("calls", "tokens in", "tokens out")):
        expected = sum(counts[number] for counts in estimated.values())
        actual = sum(spent.get(stage, (0, 0, 0))[number] for stage in estimated)
        parts.append(f"{name} {expected:,} for {actual:,} ({expected / actual - 1:+.1%})")
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    demo = [item for item in load_documents(DEMO) if isinstance(item, Document)]
    results = {"hotpotqa-mini, embedded": measure(demo, Settings())}
    with stand_in(latency_ms=0) as server:
        settings = Settings(
            encoder=EncoderSettings(name="stand-in", api_base=server.url),
            roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url)},
        )
        results["multihop_rag, stand-in"] = measure(one_text(options.data, None), settings)
    if options.json:
        print(json.dumps({"machine": machine(), "results": results}, indent=2))
        return
    print(machine())
    for name, result in results.items():
        print(f"{name}: before: {errors(result['before'], result['spent'])}")
        print(f"{' ' * len(name)}  extraction: {errors({'extract': result['before']['extract']}, result['spent'])}")
        print(f"{' ' * len(name)}  later stages, once extracted: {errors(result['after_extraction'], result['spent'])}")


if __name__ == "__main__":
    main()
