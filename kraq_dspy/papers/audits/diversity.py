"""Measures how diverse the evidence is that retrievers find: KRAQ's central claim (KRAQ paper, 1 and 3.1).

Traditional retrieval finds passages "lexically similar both to the query and to one another"; auxiliary questions are
to widen that. Two measures say whether they do: how alike the passages found for a question are, and from how many
communities of the graph they come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.defaults import RETRIEVED
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import Interval, bootstrap_difference, bootstrap_mean
from kraq_dspy.ports import Progress, Retriever, SilentProgress, Vectors
from kraq_dspy.records import Community, Hit
from kraq_dspy.workspace import Workspace

MEASURES = ("pairwise_cosine", "communities", "documents", "recall")
"""The measures of a question's passages: their similarity (less is more diverse), the number of
their communities and documents, and the share of the documents with the evidence, if known."""


@dataclass(frozen=True, slots=True)
class RetrieverDiversity:
    """What one retriever finds: means by measure, and their paired differences to the first retriever."""

    name: str
    means: Mapping[str, Interval]
    differences: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class DiversityReport:
    """How diverse the evidence of several retrievers is. Communities are those of `level`; `k` passages a question."""

    k: int
    level: int
    n_questions: int
    retrievers: tuple[RetrieverDiversity, ...]


def mean_pairwise_cosine(vectors: Vectors) -> float:
    """Mean cosine over all pairs of rows, in [-1, 1]; 1 if all point the same way (Ziegler et al., 2005).

    Rows are L2-normalised, `[n, dimension]`. Raises EvaluationError for fewer than two rows.

    >>> mean_pairwise_cosine(np.eye(2, dtype=np.float32)), mean_pairwise_cosine(np.ones((3, 1), dtype=np.float32))
    (0.0, 1.0)
    """
    n = len(vectors)
    if n < 2:
        raise EvaluationError(f"How alike passages are is undefined for {n} of them; it takes two.")

    # The squared length of the sum is the sum of all cosines, the n of each row with itself among them.
    total = vectors.astype(np.float64).sum(axis=0)
    mean = (float(total @ total) - n) / (n * (n - 1))
    return min(1.0, max(-1.0, mean))


def measure_diversity(
    space: Workspace,
    retrievers: Mapping[str, Retriever],
    examples: Sequence[Example],
    *,
    k: int = RETRIEVED,
    level: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> DiversityReport:
    """Asks each retriever every question for `k` passages, and compares what they find, the first as the baseline.

    Cosines are those of the index's own vectors of passages. A passage counts for each community of `level` that its
    chunk is in (0 is the broadest). Recall is left out unless every question names its documents.

    Raises EvaluationError without two questions.
    """
    if len(examples) < 2:
        raise EvaluationError(f"Found {counted(len(examples), 'question')}; intervals take two or more.")

    progress = progress or SilentProgress()
    communities = communities_of_chunks(space, level)
    has_gold = all(example.supporting_ids for example in examples)
    scores: dict[str, dict[str, list[float]]] = {}
    for name, retrieve in retrievers.items():
        progress.start(name, len(examples))
        of_retriever: dict[str, list[float]] = {measure: [] for measure in MEASURES if has_gold or measure != "recall"}
        for example in examples:
            hits = retrieve(example.question, k)
            for measure, value in diversity_of(space, hits, example, communities).items():
                if measure in of_retriever:
                    of_retriever[measure].append(value)
            progress.advance(name)
        progress.finish(name)
        scores[name] = of_retriever

    baseline = next(iter(scores.values()))
    rows = []
    for name, values in scores.items():
        means = {measure: bootstrap_mean(each, seed=seed) for measure, each in values.items()}
        differences = {}
        if values is not baseline:
            differences = {
                measure: bootstrap_difference(each, baseline[measure], seed=seed) for measure, each in values.items()
            }
        rows.append(RetrieverDiversity(name, means, differences))
    return DiversityReport(k, level, len(examples), tuple(rows))


def communities_of_chunks(space: Workspace, level: int) -> dict[str, set[str]]:
    """The ids of the communities of a level that a chunk is in, by the chunk's id."""
    of_chunk: dict[str, set[str]] = {}
    for community in space.index.all(Community):
        is_there = community.level == level or (community.level < level and community.is_leaf)
        if is_there:
            for chunk_id in community.chunk_ids:
                of_chunk.setdefault(chunk_id, set()).add(community.id)
    return of_chunk


def diversity_of(
    space: Workspace, hits: Sequence[Hit], example: Example, communities: Mapping[str, set[str]]
) -> dict[str, float]:
    """Each of `MEASURES` for what was found for one question; recall where its documents are known.

    `communities` are those of `communities_of_chunks`.
    """
    chunk_ids = [hit.chunk.id for hit in hits]
    documents = list(dict.fromkeys(hit.chunk.document_id for hit in hits))
    touched: set[str] = set()
    for chunk_id in chunk_ids:
        touched |= communities.get(chunk_id, set())
    values = {"communities": float(len(touched)), "documents": float(len(documents))}

    # Of one passage alone nothing is said by cosines: it is as alike as can be.
    values["pairwise_cosine"] = 1.0
    if len(chunk_ids) > 1:
        values["pairwise_cosine"] = mean_pairwise_cosine(space.index.chunk_vectors.vectors(chunk_ids))

    if example.supporting_ids:
        values["recall"] = recall_at_k(frozenset(example.supporting_ids), documents, len(chunk_ids) or 1)
    return values
