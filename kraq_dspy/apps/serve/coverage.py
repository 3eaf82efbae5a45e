"""Pictures how much of a corpus its questions cover."""

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from kraq_dspy.apps.serve.atlas import Json, question_json
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.questions import choose_questions, coverage, coverage_curve, nearest_chunks

if TYPE_CHECKING:
    from kraq_dspy.apps.serve.served import ServedIndex

NEAREST = 5
POINTS, CHOSEN, DOCUMENTS = 60, 20, 3000


def coverage_picture(served: "ServedIndex") -> Json:
    """A passage is covered by a question when it is among the five nearest to it; duplicates do not count.

    `curves` are (questions, share) of the first questions, broadest first and chosen greedily; `chosen` are the first
    of the latter. `documents` have for each passage, in reading order, how many questions cover it. Raises
    EvaluationError without questions or passages.
    """
    index, questions = served.index, served.atlas.questions
    chunk_ids = list(order := index.reading_order())
    if not questions or not chunk_ids:
        raise EvaluationError("There are no questions or no passages.")
    vectors = index.question_vectors.vectors([question.id for question in questions])
    nearest = nearest_chunks(vectors, index.chunk_vectors.vectors(chunk_ids), NEAREST)
    counts = np.bincount(nearest.ravel(), minlength=len(chunk_ids))
    levels = np.array([question.level for question in questions])
    best = choose_questions(nearest, len(chunk_ids), min(len(questions), 1000))
    by_document: defaultdict[str, list[int]] = defaultdict(list)
    for chunk_id, count in zip(chunk_ids, counts.tolist(), strict=True):
        by_document[order[chunk_id]].append(count)
    return {
        "k": nearest.shape[1],
        "n_questions": len(questions),
        "n_passages": len(chunk_ids),
        "n_documents": len(by_document),
        "share": coverage(nearest, len(chunk_ids)),
        "levels": [
            {"level": int(level), "share": coverage(nearest[levels == level], len(chunk_ids))}
            for level in np.unique(levels)
        ],
        "curves": {
            "broadest first": _sampled(coverage_curve(nearest, len(chunk_ids)).tolist()),
            "chosen greedily": _sampled(list(best.coverage)),
        },
        "chosen": [question_json(questions[place]) for place in best.positions[:CHOSEN]],
        "documents": [
            {"id": each, "title": served.atlas.titles.get(each, each), "counts": of}
            for each, of in list(by_document.items())[:DOCUMENTS]
        ],
    }


def _sampled(curve: list[float]) -> list[tuple[int, float]]:
    places = sorted({int(place) for place in np.linspace(1, len(curve), min(POINTS, len(curve)))})
    return [(place, curve[place - 1]) for place in places]
