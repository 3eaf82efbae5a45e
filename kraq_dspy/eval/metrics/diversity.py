"""Measures how different from each other the chunks are that a program retrieved."""

from collections.abc import Sequence

import numpy as np

from kraq_dspy.errors import EvaluationError
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.records import Hit


def mean_pairwise_distance(vectors: Vectors) -> float:
    """Mean of 1 - cosine over all pairs of rows, in [0, 2]; 0 when all point the same way (Ziegler et al., 2005).

    Rows are L2-normalised, `[n, dimension]`. Raises EvaluationError for fewer than two rows or for NaN.
    """
    n = len(vectors)
    if n < 2:
        raise EvaluationError(f"The distance between hits is undefined for {n} hit(s); it takes two.")
    if np.isnan(vectors).any():
        raise EvaluationError(f"Row {int(np.isnan(vectors).any(axis=1).argmax())}: the vector holds NaN.")
    # The squared length of the sum is the sum of all cosines, the n of each row with itself among them.
    total = vectors.astype(np.float64).sum(axis=0)
    mean_cosine = (float(total @ total) - n) / (n * (n - 1))
    return min(2.0, max(0.0, 1.0 - mean_cosine))


def hit_distance(hits: Sequence[Hit], embedder: Embedder) -> float:
    """`mean_pairwise_distance` of the hits' passages."""
    return mean_pairwise_distance(embedder.encode_passages([hit.chunk.passage for hit in hits]))


def distinct_documents(hits: Sequence[Hit]) -> int:
    """Number of documents that the hits come from."""
    return len({hit.chunk.document_id for hit in hits})
