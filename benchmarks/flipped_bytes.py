"""Flips bits in the files of an index and counts what readers are served.

    python benchmarks/flipped_bytes.py --flips 400

An index of the bundled example is made with everything that needs no language model elsewhere. For each flip a copy of
the folder gets one bit of one byte changed: in every file in turn, and in `sums.json` and the manifests more often than
their size would have it. Then it is opened and asked by three retrievers and for questions, as a reader would. Counted
are flips whose answers are the same, those that are refused in words, those that are served as whole with other
answers, and tracebacks.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from kraq_dspy.asset.corpus.load import bundled_example, load_documents
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import KraqError
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.prepare.raptor import build_tree
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, Settings
from kraq_dspy.workspace import Workspace

QUESTIONS = ("Who directed the film?", "Where was the band formed?")
RETRIEVERS = ("dense", "bm25", "adaptive")
OFTEN = ("sums.json", "manifest.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=400)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    embedder = load_embedder(EncoderSettings())
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.kraq"
        make(whole, embedder, options.documents)
        outcomes, served = flip_all(whole, embedder, options.flips, random.Random(options.seed))
    print(json.dumps({"flips": options.flips, **outcomes, "served_as_whole": served}, indent=2))


def make(path: Path, embedder: Embedder, n_documents: int) -> None:
    documents = [each for each in load_documents(bundled_example() / "corpus.jsonl") if isinstance(each, Document)]
    build_index(documents[:n_documents], path, embedder=embedder)
    with Index.open(path, write=True) as index:
        build_tree(index, embedder, LanguageModels(Settings(), embedder=embedder))


def flip_all(whole: Path, embedder: Embedder, count: int, chance: random.Random) -> tuple[Counter[str], list[str]]:
    """How many flips ended how, and the places of those whose readers were served something else without a word."""
    expected = answers(whole, embedder)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    chosen = [file for file in files if file.name in OFTEN] * 3 + files
    outcomes: Counter[str] = Counter()
    served: list[str] = []
    for number in range(count):
        file = chosen[number % len(chosen)]
        copy = whole.with_name("flipped.kraq")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        content = bytearray((copy / file).read_bytes())
        place, bit = chance.randrange(len(content)), chance.randrange(8)
        content[place] ^= 1 << bit
        (copy / file).write_bytes(content)
        try:
            outcome = "same answers" if answers(copy, embedder) == expected else "other answers"
        except KraqError:
            outcome = "refused in words"
        except Exception as error:  # noqa: BLE001 (what is counted here)
            outcome = f"traceback: {type(error).__name__}"
        outcomes[outcome] += 1
        if outcome not in ("same answers", "refused in words"):
            served.append(f"{file}, byte {place}, bit {bit}: {outcome}")
    return outcomes, served


def answers(path: Path, embedder: Embedder) -> list[object]:
    """What a reader gets: passages with their scores, questions, and which files the state has."""
    with Workspace.open(path, embedder=embedder) as space:
        results: list[object] = [str(space.index.file("raptor.json") is not None)]
        for question in QUESTIONS:
            for name in RETRIEVERS:
                hits = space.retriever(name)(question, 5)
                results.append([(hit.chunk.id, hit.chunk.text, round(hit.score, 4)) for hit in hits])
            results.append([hit.question.text for hit in space.questions()(question, 3)])
        return results


if __name__ == "__main__":
    main()
