"""Prints questions that an index of each of four corpora would show, drawn without looking, for a person to judge.

    python benchmarks/questions_shown.py --data ../shared/data [--out runs/questions-shown]

News (multihop_rag), an encyclopedia (hotpotqa), papers (qasper) and a novel (graphrag_christmas_carol); of each the
first passages of its corpus, indexed with the embedded model. An index that `--out` holds already is taken as it is.
Drawn from are all that `kraq questions` would list, of every level.
"""

import argparse
import random
from itertools import islice
from pathlib import Path

from kraq_dspy.corpus.load import load_documents
from kraq_dspy.indexing.build import build_index
from kraq_dspy.records import Document
from kraq_dspy.stores.index import Index

CORPORA = ("multihop_rag", "hotpotqa", "qasper", "graphrag_christmas_carol")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/questions-shown"))
    parser.add_argument("--passages", type=int, default=400, help="of each corpus, from its beginning")
    parser.add_argument("--questions", type=int, default=50, help="drawn of each")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in CORPORA:
        folder = options.out / f"{name}-{options.passages}.kraq"
        if not folder.exists():
            records = load_documents(options.data / name / "corpus.jsonl.gz")
            build_index([each for each in islice(records, options.passages) if isinstance(each, Document)], folder)
        with Index.open(folder) as index:
            texts = sorted(question.text for question in index.questions(source="kraq"))
        drawn = random.Random(options.seed).sample(texts, min(options.questions, len(texts)))
        print(f"\n## {name}: {len(drawn)} of {len(texts):,}\n")
        print("\n".join(f"{number}. {text}" for number, text in enumerate(drawn, start=1)), flush=True)


if __name__ == "__main__":
    main()
