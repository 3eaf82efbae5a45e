"""Measures how diverse the evidence is that retrievers find: KRAQ's central claim (KRAQ paper, 1 and 3.1).

Traditional retrieval finds passages "lexically similar both to the query and to one another"; auxiliary questions are
to widen that. Two measures say whether they do: how alike the passages found for a question are, and from how many
communities of the graph they come.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.evaluation import RETRIEVED, Evaluation, evaluate
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.ports import Progress, Retriever, Vectors
from kraq_dspy.records import Community, Hit
from kraq_dspy.workspace import Workspace

MEASURES = ("pairwise_cosine", "communities", "documents")
"""The measures of a question's passages: their similarity (less is more diverse), and the number of
their communities and documents."""


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
) -> Evaluation:
    """Ask each retriever every question for `k` passages, and compare what they find, the first as the baseline.

    Its metrics are `MEASURES`, and recall if a question names its documents. Cosines are those of the index's own
    vectors of passages. A passage counts for each community of `level` that its chunk is in (0 is the broadest).
    """
    communities = communities_of_chunks(space, level)

    def metric(measure: str) -> Metric:
        return Metric(measure, lambda _, found: diversity_of(space, found.hits, communities)[measure], needs=())

    recall = ["recall"] if any(example.supporting_ids for example in examples) else []
    title = f"{counted(k, 'passage')}, communities of level {level}"
    metrics: list[str | Metric] = [*map(metric, MEASURES), *recall]
    return evaluate(
        retrievers, examples, metrics, space=space, k=k, concurrency=1, seed=seed, title=title, progress=progress
    )


def communities_of_chunks(space: Workspace, level: int) -> dict[str, set[str]]:
    """The ids of the communities of a level that a chunk is in, by the chunk's id."""
    of_chunk: dict[str, set[str]] = {}
    for community in space.index.all(Community):
        is_there = community.level == level or (community.level < level and community.is_leaf)
        if is_there:
            for chunk_id in community.chunk_ids:
                of_chunk.setdefault(chunk_id, set()).add(community.id)
    return of_chunk


def diversity_of(space: Workspace, hits: Sequence[Hit], communities: Mapping[str, set[str]]) -> dict[str, float]:
    """Each of `MEASURES` for what was found for one question; `communities` are those of `communities_of_chunks`."""
    chunk_ids = [hit.chunk.id for hit in hits]
    touched = set[str]().union(*(communities.get(chunk_id, ()) for chunk_id in chunk_ids))
    values = {"communities": float(len(touched)), "documents": float(len({hit.chunk.document_id for hit in hits}))}

    # Of one passage alone nothing is said by cosines: it is as alike as can be.
    values["pairwise_cosine"] = 1.0
    if len(chunk_ids) > 1:
        values["pairwise_cosine"] = mean_pairwise_cosine(space.index.chunk_vectors.vectors(chunk_ids))
    return values
