"""Whose view of the passages clusters them as the question's own does: the nearest KRAQ question's, any one's, none.

    OMP_NUM_THREADS=1 python benchmarks/proxies.py --data ../shared/data --out runs/default multihop_rag squad

Agreement (adjusted Rand index, 1 for the same clusters, 0 by chance) with the clusters of E(d|Q), of the ten passages
that dense search finds: seen from the nearest KRAQ question, from one drawn at random, from none (the passages' own
embeddings), and from the question with another seed of KMeans, which is as well as can be. No language model is asked.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from sklearn.metrics import adjusted_rand_score

from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.programs.speculative.subsets import cluster
from kraq_dspy.records import Question
from kraq_dspy.settings import InstructedSettings, Settings
from kraq_dspy.workspace import Workspace

PASSAGES, CLUSTERS = 10, 2  # the papers' for TriviaQA
VIEWS = ("nearest", "arbitrary", "none", "itself, another seed")


def agreement(first: Sequence[int], second: Sequence[int]) -> float:
    """Adjusted Rand index of two partitions of the same passages: 1 for equal ones, about 0 for unrelated ones."""
    return float(adjusted_rand_score(first, second))


def agreements(space: Workspace, questions: list[str]) -> dict[str, list[float]]:
    """By view, the agreement with the question's own clusters, one for each question."""
    draw, sees = random.Random(0), space.instructed_embedder
    find, nearest = space.retriever("dense"), space.questions()
    stored = [question.text for question in space.index.all(Question) if question.duplicate_of is None]
    scores: dict[str, list[float]] = {view: [] for view in VIEWS}
    for question in questions:
        hits = find(question, PASSAGES)
        texts = [hit.chunk.passage for hit in hits]
        own = sees.encode(question, texts)
        views = {
            "nearest": sees.encode(nearest(question, 1)[0].question.text, texts),
            "arbitrary": sees.encode(draw.choice(stored), texts),
            "none": space.index.chunk_vectors.vectors([hit.chunk.id for hit in hits]),
            "itself, another seed": own,
        }
        clusters = cluster(own, CLUSTERS)
        for view, vectors in views.items():
            seed = 1 if view == "itself, another seed" else 0
            scores[view].append(agreement(clusters, cluster(vectors, CLUSTERS, seed=seed)))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    settings, embedder = prepared(Settings(instructed=InstructedSettings(kind="sentences")))
    encoder = load_instructed_embedder(settings.instructed).name
    print(f"| {encoder} | {' | '.join(VIEWS)} | nearest less arbitrary | less none |")
    print("|---" * (len(VIEWS) + 3) + "|")
    for name in options.datasets:
        dataset = load_dataset(name, options.data)
        examples = list(dataset.examples)
        random.Random(0).shuffle(examples)
        path = prepare_index(dataset, options.out / "indexes", settings, embedder).path
        with Workspace.open(path, settings=settings, embedder=embedder) as space:
            scores = agreements(space, [example.question for example in examples[: options.questions]])
        means = [bootstrap_mean(scores[view]) for view in VIEWS]
        gains = [bootstrap_difference(scores["nearest"], scores[other]) for other in ("arbitrary", "none")]
        cells = [f"{each.estimate:.3f} [{each.low:.3f}, {each.high:.3f}]" for each in means]
        cells += [f"{each.estimate:+.3f} [{each.low:+.3f}, {each.high:+.3f}]" for each in gains]
        print(f"| {name}, {len(scores['nearest'])} questions | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
