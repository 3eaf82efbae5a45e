"""Measures coverage of an index by its questions, finds the best few, and whether coverage foretells Relevance."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError, needs
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.metrics.coverage import Nearest, choose_questions, coverage, coverage_curve, nearest_chunks
from kraq_dspy.eval.metrics.questions import nearest_rows
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Question
from kraq_dspy.stores.index import Index


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """`share` of the chunks are among the `k` nearest of some question, in [0, 1].

    `curves` are the shares covered by the first 1, 2, ... questions: broadest first, by chance, and greedily chosen;
    `chosen` are the questions of the last, best first, no more than the budget.
    """

    source: str
    k: int
    n_questions: int
    n_chunks: int
    share: float
    curves: Mapping[str, tuple[float, ...]]
    chosen: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class SubsetPlan:
    """Subsets of `sizes` sizes, from 10 questions up to half of them; `draws` of each size are chosen by chance."""

    sizes: int = 6
    draws: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Subset:
    """Some of the questions: how many, chosen how, what they cover, and how near they come to reference questions."""

    size: int
    chosen_by: str
    coverage: float
    relevance: float
    relevance_at: float


@dataclass(frozen=True, slots=True)
class Foretelling:
    """Spearman rank correlation of coverage with Relevance@`tau` and with Relevance over the subsets.

    Both grow with the number of questions, so `within_size` is the mean correlation among subsets of one size, where
    size says nothing; None where no size has variation in both. `model` is BERTScore's.
    """

    tau: float
    with_relevance_at: float | None
    with_relevance: float | None
    within_size: float | None
    subsets: tuple[Subset, ...]
    model: str


def index_coverage(
    index: Index, *, k: int = 5, budget: int = 100, source: str = "kraq", seed: int = 0
) -> IndexCoverage:
    """Questions marked as duplicates do not count. Raises EvaluationError when the index has no such questions."""
    questions, nearest, n_chunks, _ = _nearest(index, k, source)
    shuffled = np.random.default_rng(seed).permutation(len(questions))
    best = choose_questions(nearest, n_chunks, budget)
    curves = {
        "broadest first": coverage_curve(nearest, n_chunks),
        "by chance": coverage_curve(nearest[shuffled], n_chunks),
        "greedy": np.array(best.coverage),
    }
    return IndexCoverage(
        source,
        nearest.shape[1],
        len(questions),
        n_chunks,
        coverage(nearest, n_chunks),
        {name: tuple(map(float, curve)) for name, curve in curves.items()},
        tuple(questions[position] for position in best.positions),
    )


def foretell_relevance(
    index: Index,
    references: Sequence[str],
    reference_vectors: Vectors,
    scorer: BertScorer,
    *,
    k: int = 5,
    source: str = "kraq",
    tau: float = 0.7,
    plan: SubsetPlan = SubsetPlan(),
) -> Foretelling:
    """Coverage against Relevance over subsets of the questions: of each size those of the `plan`, drawn by chance, one
    chosen greedily, and one that covers little (questions nearest to one of them).

    Raises EvaluationError for fewer than 20 questions or no reference.
    """
    questions, nearest, n_chunks, vectors = _nearest(index, k, source)
    if len(questions) < 20 or not references:
        raise EvaluationError(
            f"{len(questions)} questions and {len(references)} references are too few: it takes 20 and 1 or more."
        )
    rng = random.Random(plan.seed)
    sizes = sorted({int(size) for size in np.geomspace(10, len(questions) // 2, plan.sizes)})
    greedy = choose_questions(nearest, n_chunks, sizes[-1]).positions
    known: dict[tuple[int, int], float] = {}
    subsets = []
    for size in sizes:
        ways = [("chance", rng.sample(range(len(questions)), size)) for _ in range(plan.draws)]
        ways.append(("greedy", list(greedy[:size])))
        crowd = np.argsort(-(vectors @ vectors[rng.randrange(len(questions))]), kind="stable")[:size]
        ways.append(("crowded", crowd.tolist()))
        for way, members in ways:
            f1 = _relevance(references, reference_vectors, questions, vectors, members, scorer, known)
            subsets.append(
                Subset(size, way, coverage(nearest[members], n_chunks), float(f1.mean()), float((f1 >= tau).mean()))
            )
    by_size = [[(subset.coverage, subset.relevance) for subset in subsets if subset.size == size] for size in sizes]
    inside = [value for pairs in by_size if (value := _spearman(*zip(*pairs, strict=True))) is not None]
    covered = [subset.coverage for subset in subsets]
    return Foretelling(
        tau,
        _spearman(covered, [subset.relevance_at for subset in subsets]),
        _spearman(covered, [subset.relevance for subset in subsets]),
        float(np.mean(inside)) if inside else None,
        tuple(subsets),
        f"{scorer.name}, layer {scorer.layer}",
    )


def _nearest(index: Index, k: int, source: str) -> tuple[list[Question], Nearest, int, Vectors]:
    questions = index.questions(source=source)
    chunk_ids = index.ids(Chunk)
    if not questions:
        raise EvaluationError(f"{str(index.path)!r} has no questions of the source {source!r}.")
    vectors = index.question_vectors.vectors([question.id for question in questions])
    nearest = nearest_chunks(vectors, index.chunk_vectors.vectors(chunk_ids), k)
    return questions, nearest, len(chunk_ids), vectors


def _relevance(
    references: Sequence[str],
    reference_vectors: Vectors,
    questions: Sequence[Question],
    vectors: Vectors,
    members: Sequence[int],
    scorer: BertScorer,
    known: dict[tuple[int, int], float],
) -> NDArray[np.float64]:
    """BERTScore F1 of each reference with its nearest member; pairs scored before are in `known`."""
    near, _ = nearest_rows(reference_vectors, vectors[list(members)])
    pairs = [(row, members[position]) for row, position in enumerate(near.tolist())]
    fresh = sorted({pair for pair in pairs if pair not in known})
    if fresh:
        scored = scorer.score([references[row] for row, _ in fresh], [questions[each].text for _, each in fresh])
        known.update(zip(fresh, scored.f1.tolist(), strict=True))
    return np.array([known[pair] for pair in pairs])


def _spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """None where one of the two does not vary."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    with needs("scipy", "eval", "Rank correlation"):
        from scipy.stats import spearmanr
    return float(spearmanr(first, second).statistic)
