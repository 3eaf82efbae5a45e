"""Measures the resolution of entities by similar names on the aliases in two data sets (docs/results/resolution.md).

    python benchmarks/resolution.py --data ../shared/data
    python benchmarks/resolution.py --data ../shared/data --lm gguf/MODEL.gguf --pairs 30

A pair is right where a question of the set lists both names as answers. It is wrong where both are titles of documents
of their own. Most pairs are neither: those that would be merged unasked are printed with --show, to be read.
"""

import argparse
import gzip
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.asset.graph.candidates import MergeCandidate, NameCount, NameGroup, grouped
from kraq_dspy.asset.graph.names import normalise_name
from kraq_dspy.asset.graph.similar_names import meant_alike, merged_unasked, spelled_alike
from kraq_dspy.language.names import names_in
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.kraq.describe import ConfirmSame
from kraq_dspy.settings import EncoderSettings

SETS = ("musique", "popqa")
THRESHOLDS = (0.85, 0.9, 0.92, 0.95)
DOCUMENTS = 1900

Pair = tuple[str, str]


@dataclass(frozen=True)
class Labelled:
    """The names of a data set, and what is known of pairs of them, by their keys."""

    groups: Mapping[str, NameGroup]
    aliases: frozenset[Pair]
    titles: frozenset[str]
    texts: Mapping[str, str]  # the first text that has a name

    def is_right(self, pair: Pair) -> bool:
        return pair in self.aliases

    def is_wrong(self, pair: Pair) -> bool:
        return pair not in self.aliases and self.titles.issuperset(pair)


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_set(folder: Path) -> Labelled:
    """Names of titles and texts; aliases are the names that a question lists as its answers."""
    documents = rows(folder / "corpus.jsonl.gz")[:DOCUMENTS]
    counts: Counter[str] = Counter()
    texts: dict[str, str] = {}
    for document in documents:
        for name in (document["title"], *names_in(document["text"])):
            counts[name] += 1
            texts.setdefault(normalise_name(name), document["text"])
    groups = grouped([NameCount(name, "", count) for name, count in counts.items()])

    aliases: set[Pair] = set()
    for question in rows(folder / "questions.jsonl.gz"):
        there = sorted({normalise_name(answer) for answer in question["answers"]} & groups.keys())
        aliases.update(itertools.combinations(there, 2))
    titles = frozenset(normalise_name(document["title"]) for document in documents)
    return Labelled(groups, frozenset(aliases), titles, texts)


def pair_of(candidate: MergeCandidate) -> Pair:
    first, second = sorted((normalise_name(candidate.first), normalise_name(candidate.second)))
    return first, second


def counted(candidates: Sequence[MergeCandidate], labelled: Labelled) -> str:
    pairs = [pair_of(candidate) for candidate in candidates]
    right, wrong = sum(map(labelled.is_right, pairs)), sum(map(labelled.is_wrong, pairs))
    return f"{len(pairs)} | {right} | {wrong}"


def measure(name: str, labelled: Labelled, show: bool) -> list[MergeCandidate]:
    """The table of one set; gives back the candidates of the lowest threshold."""
    embedder = load_embedder(EncoderSettings())
    by_method = {
        "spelling": list(spelled_alike(labelled.groups, THRESHOLDS[0])),
        "meaning": list(meant_alike(labelled.groups, THRESHOLDS[0], embedder)),
    }
    print(f"\n{name}: {len(labelled.groups)} names, {len(labelled.aliases)} pairs of aliases among them\n")
    print("| by | from | asked about | aliases | two documents | unasked | aliases | two documents | slips |")
    print("|---|---|---|---|---|---|---|---|---|")
    for method, candidates in by_method.items():
        for threshold in THRESHOLDS:
            some = [candidate for candidate in candidates if candidate.similarity >= threshold]
            unasked = merged_unasked(some, labelled.groups)
            slips = sum(candidate.certain for candidate in some)
            columns = (counted(some, labelled), counted(unasked, labelled), str(slips))
            print(f"| {method} | {threshold} | {' | '.join(columns)} |")
            if show and threshold >= 0.92:
                for candidate in unasked:
                    print(f"    {candidate.similarity:.3f} {candidate.first} | {candidate.second}")
    return [candidate for candidates in by_method.values() for candidate in candidates]


def confirm(model: str, candidates: Iterable[MergeCandidate], labelled: Labelled, most: int, seed: int) -> None:
    """Asks the model about as many labelled pairs of either kind, and says how often it is right."""
    pairs = sorted({pair_of(candidate) for candidate in candidates})
    draw = random.Random(seed)
    kinds = {
        "aliases": [pair for pair in pairs if labelled.is_right(pair)],
        "two documents": [pair for pair in pairs if labelled.is_wrong(pair)],
    }
    program = ConfirmSame()
    with dspy.context(lm=make_lm(model), adapter=KraqAdapter()):
        for kind, some in kinds.items():
            drawn = draw.sample(some, min(most, len(some)))
            same = sum(program(first=shown(a, labelled), second=shown(b, labelled)).same for a, b in drawn)
            print(f"{model}: of {len(drawn)} pairs ({kind}) it says of {same} that they are one")


def shown(key: str, labelled: Labelled) -> str:
    """The name as a build shows it: with the first sentence of a text that has it."""
    name, text = labelled.groups[key].name, labelled.texts.get(key, "")
    sentence = next((part for part in text.split(". ") if name in part), "")
    return f"{name}: {sentence[:250]}" if sentence else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lm", help="a model to confirm pairs")
    parser.add_argument("--pairs", type=int, default=30, help="of either kind, for the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print what is merged unasked from 0.92 on")
    options = parser.parse_args()
    for name in SETS:
        labelled = read_set(options.data / name)
        candidates = measure(name, labelled, options.show)
        if options.lm:
            confirm(options.lm, candidates, labelled, options.pairs, options.seed)


if __name__ == "__main__":
    main()
