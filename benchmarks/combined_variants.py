"""Combined retrieval beyond the paper: other shares, other choices of auxiliary questions, other ways to use them.

    kraq index ../shared/data/musique/corpus.jsonl.gz --out musique.kraq     # of each set
    python benchmarks/combined_variants.py --data ../shared/data --index musique=musique.kraq ...

Dense retrieval over the index's own vectors, no language model. Each cell is recall@k (share of a question's supporting
documents among the first k passages), behind it the paired difference from the question alone with its 95 % interval.
Parameters were chosen on hotpotqa and musique; what counts is what a variant does on sets that it was not chosen on.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.embedders import load_embedder
from kraq_dspy.errors import CorpusError
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.files import json_objects
from kraq_dspy.ports import Vectors
from kraq_dspy.programs.retrievers.combined import FIRST, alpha_by_scores, share_budget
from kraq_dspy.records import Chunk, Community, Question
from kraq_dspy.stores.index import Index

BUDGETS = (5, 10, 15)


@dataclass(frozen=True)
class Corpus:
    """`passages` `[n_chunks, dim]` and `questions` `[n_questions, dim]`, float32, rows L2-normalised.

    `levels` `[n_questions]`; `parents` gives the row of the nearest question above in the hierarchy, -1 where none is.
    """

    documents: list[str]
    passages: Vectors
    questions: Vectors
    levels: Vectors
    parents: Vectors


Ranking = list[int]
Variant = Callable[[Corpus, Vectors, int], Ranking]


def top(scores: Vectors, k: int, without: Sequence[int] = ()) -> Ranking:
    """Rows of the `k` highest scores, best first."""
    if without:
        scores = scores.copy()
        scores[list(without)] = -np.inf
    return [int(row) for row in np.argsort(-scores, kind="stable")[:k]]


def alone(corpus: Corpus, query: Vectors, k: int) -> Ranking:
    return top(corpus.passages @ query, k)


def combined(n: int, alpha: float) -> Variant:
    """Algorithm 1 of the KRAQ paper; what its floors lose goes to the question."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        return with_asked(corpus, query, k, top(corpus.questions @ query, n), alpha)

    return rank


def with_asked(corpus: Corpus, query: Vectors, k: int, auxiliary: Sequence[int], alpha: float) -> Ranking:
    """The share `alpha` for the question, the rest for the stored questions in the rows `auxiliary`."""
    budget = share_budget(k, max(1, len(auxiliary)), alpha)
    scores = corpus.passages @ query
    ranking = top(scores, budget.main)
    for row in auxiliary:
        if budget.each:
            ranking += top(corpus.passages @ corpus.questions[row], budget.each, ranking)
    return ranking + top(scores, k - len(ranking), ranking)


def auto(corpus: Corpus, query: Vectors, k: int) -> Ranking:
    """`alpha="auto"` of the library."""
    scores = np.sort(corpus.passages @ query)[::-1][:FIRST]
    return with_asked(corpus, query, k, top(corpus.questions @ query, 2), alpha_by_scores(scores.tolist()))


def share_by_shape(steep: float, flat: float) -> Variant:
    """The question's share by the score of rank 10 over the first one's: half at `steep`, all of it at `flat`."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        best = np.sort(corpus.passages @ query)[::-1]
        shape = best[min(10, len(best)) - 1] / max(best[0], 1e-6)
        alpha = 0.5 + 0.5 * min(1.0, max(0.0, (shape - steep) / (flat - steep)))
        return with_asked(corpus, query, k, top(corpus.questions @ query, 2), float(alpha))

    return rank


def share_by_nearness(scale: float) -> Variant:
    """The question's share by how near its nearest stored question is, beside the passage nearest to it."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        nearest, passage = float((corpus.questions @ query).max()), float((corpus.passages @ query).max())
        alpha = 1 - 0.5 * min(1.0, max(0.0, nearest / max(passage, 1e-6)) ** scale)
        return with_asked(corpus, query, k, top(corpus.questions @ query, 2), alpha)

    return rank


def one_a_level(alpha: float) -> Variant:
    """The nearest stored question of each level, at most three levels, the broadest first."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        similarity = corpus.questions @ query
        auxiliary = [
            int(rows[np.argmax(similarity[rows])])
            for level in sorted({int(level) for level in corpus.levels})[:3]
            if len(rows := np.flatnonzero(corpus.levels == level))
        ]
        return with_asked(corpus, query, k, auxiliary, alpha)

    return rank


def descent(alpha: float) -> Variant:
    """From the nearest broadest question down to the nearest below it, and so on; the last two are auxiliary."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        similarity = corpus.questions @ query
        below = np.flatnonzero(corpus.parents < 0)
        path: Ranking = []
        while len(below):
            path.append(int(below[np.argmax(similarity[below])]))
            below = np.flatnonzero(corpus.parents == path[-1])
        return with_asked(corpus, query, k, path[:-3:-1], alpha)

    return rank


def unlike(n: int, alpha: float, weight: float) -> Variant:
    """Auxiliary questions by maximal marginal relevance: near to the question, unlike one another."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        near = top(corpus.questions @ query, 20)
        auxiliary = near[:1]
        while len(auxiliary) < min(n, len(near)):
            rest = [row for row in near if row not in auxiliary]
            value = weight * (corpus.questions[rest] @ query)
            value -= (1 - weight) * (corpus.questions[rest] @ corpus.questions[auxiliary].T).max(axis=1)
            auxiliary.append(rest[int(np.argmax(value))])
        return with_asked(corpus, query, k, auxiliary, alpha)

    return rank


def reranked(n: int, weight: float) -> Variant:
    """Every passage by its similarity to the question and to the auxiliary ones, those by theirs (thesis, 6.2.2)."""

    def rank(corpus: Corpus, query: Vectors, k: int) -> Ranking:
        similarity = corpus.questions @ query
        auxiliary = top(similarity, n)
        scores = corpus.passages @ query
        for row in auxiliary:
            scores = scores + weight / n * similarity[row] * (corpus.passages @ corpus.questions[row])
        return top(scores, k)

    return rank


VARIANTS: dict[str, Variant] = {
    "question alone": alone,
    "paper: n=2, alpha=.5": combined(2, 0.5),
    "n=2, alpha=.75": combined(2, 0.75),
    "n=1, alpha=.75": combined(1, 0.75),
    "n=3, alpha=.5": combined(3, 0.5),
    "n=2, alpha by scores (auto)": auto,
    "share by shape, .5 to .9": share_by_shape(0.5, 0.9),
    "share by shape, .5 to .8": share_by_shape(0.5, 0.8),
    "share by shape, .6 to .8": share_by_shape(0.6, 0.8),
    "share by nearness, 2": share_by_nearness(2),
    "share by nearness, 6": share_by_nearness(6),
    "share by nearness, 12": share_by_nearness(12),
    "one a level, alpha=.5": one_a_level(0.5),
    "one a level, alpha=.75": one_a_level(0.75),
    "descent, alpha=.5": descent(0.5),
    "descent, alpha=.75": descent(0.75),
    "unlike questions, .5": unlike(2, 0.5, 0.5),
    "unlike questions, .7": unlike(2, 0.5, 0.7),
    "reranked, n=1, .3": reranked(1, 0.3),
    "reranked, n=2, .3": reranked(2, 0.3),
    "reranked, n=2, .6": reranked(2, 0.6),
    "reranked, n=4, .3": reranked(4, 0.3),
    "reranked, n=4, .6": reranked(4, 0.6),
}


def read_corpus(path: Path) -> tuple[Corpus, Callable[[Sequence[str]], Vectors]]:
    """The index's vectors in memory, and its encoder of questions."""
    with Index.open(path) as index:
        embedder = load_embedder(index.manifest.settings.encoder)
        index.require_encoder(embedder)
        chunks = list(index.all(Chunk))
        questions = [each for each in index.all(Question) if each.source == "kraq" and each.duplicate_of is None]
        row_of = {each.community_id: row for row, each in enumerate(questions)}
        parent_of = {each.id: each.parent_id for each in index.all(Community)}
        parents = np.full(len(questions), -1)
        for row, question in enumerate(questions):
            above = parent_of.get(question.community_id or "")
            while above is not None and above not in row_of:
                above = parent_of.get(above)
            parents[row] = row_of.get(above, -1)
        corpus = Corpus(
            [chunk.document_id for chunk in chunks],
            index.chunk_vectors.vectors([chunk.id for chunk in chunks]),
            index.question_vectors.vectors([each.id for each in questions]),
            np.array([each.level for each in questions]),
            parents,
        )
    return corpus, embedder.encode_queries


def recalls(corpus: Corpus, queries: Vectors, supporting: Sequence[set[str]]) -> dict[str, dict[int, list[float]]]:
    """By variant and budget, of each question."""
    measured: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in VARIANTS}
    for query, gold in zip(queries, supporting, strict=True):
        for name, rank in VARIANTS.items():
            for k in BUDGETS:
                found_documents = {corpus.documents[row] for row in rank(corpus, query, k)}
                measured[name][k].append(len(gold & found_documents) / len(gold))
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--index", action="append", required=True, metavar="NAME=DIR", help="may be repeated")
    parser.add_argument("--limit", type=int, default=300, help="questions of each set, drawn with seed 0")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    for name, _, folder in (each.partition("=") for each in options.index):
        corpus, encode = read_corpus(Path(folder))
        known = set(corpus.documents)
        rows = [
            row
            for _, row in json_objects(options.data / name / "questions.jsonl.gz", CorpusError, "questions")
            if row.get("supporting_ids")
        ]
        rows = [row for row in rows if known.issuperset(row["supporting_ids"])]
        rows = random.Random(0).sample(rows, min(options.limit, len(rows)))
        queries = encode([row["question"] for row in rows])
        results[name] = recalls(corpus, queries, [set(row["supporting_ids"]) for row in rows])
        if not options.json:
            show(name, len(rows), results[name])
    if options.json:
        print(json.dumps({"machine": machine(), "recall": results}))


def show(name: str, n_questions: int, measured: dict[str, dict[int, list[float]]]) -> None:
    table = Table(f"{name}, {n_questions} questions", *[f"recall@{k}" for k in BUDGETS])
    for variant, by_budget in measured.items():
        cells = []
        for k, scores in by_budget.items():
            gain = bootstrap_difference(scores, measured["question alone"][k], resamples=2000)
            cells.append(f"{np.mean(scores):.3f} ({gain.estimate:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}])")
        table.add_row(variant, *cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
