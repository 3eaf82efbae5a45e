"""Prints questions that an index of each of four corpora would show, drawn without looking, for a person to judge.

    python benchmarks/questions_shown.py --data ../shared/data
    python benchmarks/questions_shown.py --data ../shared/data --corpora wildgraph_nature bioasq --first 12

News (multihop_rag), an encyclopedia (hotpotqa), papers (qasper) and a novel (graphrag_christmas_carol); of each the
first passages of its corpus, indexed by the embedded model. Drawn from are all that `kraq questions` would list, of
every level. The embedded questions hang on no encoder, so hashed words stand in for one, which takes seconds in place
of minutes: names are merged by spelling alone, and questions that only mean the same are not marked. With `--first`
those are printed that `kraq questions` lists first, with the topics of broad groups.
"""

import argparse
import random
import tempfile
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.store.index import Index
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from kraq_dspy.workspace.topics import topics

CORPORA = ("multihop_rag", "hotpotqa", "qasper", "graphrag_christmas_carol")
PLAIN = "What is said about "  # the form that asks no more than what is told of a name


class HashedWords:
    """An encoder that counts words."""

    name = "hashed-words"
    dimension = 64

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        vectors = np.full((len(texts), self.dimension), 1e-6, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    encode_queries = encode_passages


def first_listed(index: Index, count: int) -> list[str]:
    listed = sorted(index.questions(source="kraq"), key=lambda each: (each.level, -len(each.chunk_ids)))[:count]
    topic_by_id = topics(index, listed)
    return [
        f"{len(each.chunk_ids):5}  " + (f"About: {topic_by_id[each.id]}" if each.id in topic_by_id else each.text)
        for each in listed
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=400, help="of each corpus, from its beginning")
    parser.add_argument("--questions", type=int, default=50, help="drawn of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpora", nargs="+", default=CORPORA, help="folders of data sets")
    parser.add_argument("--first", type=int, default=0, help="print so many as `kraq questions` lists them")
    options = parser.parse_args()
    settings = Settings()
    for name in options.corpora:
        with tempfile.TemporaryDirectory() as folder:
            records = islice(load_documents(options.data / name / "corpus.jsonl.gz"), options.passages)
            documents = [each for each in records if isinstance(each, Document)]
            build_index(documents, Path(folder) / "index", settings=settings, embedder=HashedWords())
            with Index.open(Path(folder) / "index") as index:
                if options.first:
                    print(f"\n## {name}\n", *first_listed(index, options.first), sep="\n", flush=True)
                    continue
                texts = sorted(question.text for question in index.questions(source="kraq"))
        plain = sum(text.startswith(PLAIN) for text in texts)
        drawn = random.Random(options.seed).sample(texts, min(options.questions, len(texts)))
        print(f"\n## {name}: {len(drawn)} of {len(texts):,}, {plain} of which ask no more than what is said\n")
        print("\n".join(f"{number}. {text}" for number, text in enumerate(drawn, start=1)), flush=True)


if __name__ == "__main__":
    main()
