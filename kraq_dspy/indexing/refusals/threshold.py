"""Measures the threshold of a corpus, the score below which it does not answer a question, and keeps it with the index.

No question of people is needed. The index's own questions cannot set the threshold: they are asked in a passage's own
words, so that a threshold made of them would refuse people. A packaged set of questions about all the world stands for
what is foreign. The half of them that scores lowest tells how foreign questions score in this corpus with this encoder,
and how far they spread, even where the corpus does answer many of the others. Own questions only bound the threshold:
in a corpus about all the world little is foreign.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.index import THRESHOLD, Index
from kraq_dspy.asset.store.sync import Point, sync_vectors
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.refusals.foreign_questions import ABOUT_THE_WHOLE, FOREIGN
from kraq_dspy.indexing.refusals.scoring import PassageScorer
from kraq_dspy.models.embedders.packaged_embedder import PackagedEmbedder
from kraq_dspy.ports import Embedder, SilentProgress, Vectors
from kraq_dspy.records import content_id

SPREADS = 1.5
"""How far the threshold lies above the median of foreign scores, where their lower quartile lies 1 below it. Of 1, 1.5,
2 and 2.5 the largest that refuses at most 5 % of human questions on each of six sets
(benchmarks/results/refusals.md)."""
OWN_QUESTIONS = 200
"""Own questions that are looked at, evenly drawn."""
PACKAGED = "foreign"
"""The store of an index's vectors that has those of the packaged questions."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a question is judged by. A question whose score (`PassageScorer`) is below `score` is not answered here,
    unless its cosine with a question about the collection as a whole is `whole` or more: such a one no single passage
    answers.

    >>> Threshold(0.38, 0.52).score
    0.38
    """

    score: float
    whole: float


def measure_threshold(index: Index, embedder: Embedder) -> Threshold | None:
    """The threshold of an index that has its passages, their vectors and its questions.

    None without passages, and where half of the foreign questions score as a tenth of its own do: then too little is
    foreign to it. The threshold lies at most half way from the median of foreign scores to that of own ones.
    """
    if not index.chunk_vectors.count():
        return None
    scorer = PassageScorer(index, embedder)
    vectors, about_the_whole = _vectors_of_packaged(index, embedder)
    foreign = np.array([each.value for each in scorer(FOREIGN, vectors)])
    median = float(np.median(foreign))
    score = median + SPREADS * (median - float(np.quantile(foreign, 0.25)))

    own = _own_scores(index, scorer)
    if len(own):
        if np.quantile(own, 0.1) <= median:
            return None
        score = min(score, (median + float(np.median(own))) / 2)

    return Threshold(score, float((vectors @ about_the_whole.T).max()))


def keep_threshold(index: Index, embedder: Embedder) -> Threshold | None:
    """Measure the threshold and store it in an index that is open for writing, in place of a former one."""
    threshold = measure_threshold(index, embedder)
    if threshold is None:
        (index.home / THRESHOLD).unlink(missing_ok=True)
    else:
        with replaced(index.home / THRESHOLD) as draft:
            draft.write_text(json.dumps(asdict(threshold)), "utf-8")
    return threshold


def read_threshold(index: Index) -> Threshold | None:
    """The threshold that the index stores; None if it has none. Raises IndexStateError for one that is damaged."""
    path = index.file(THRESHOLD)
    if path is None:
        return None
    try:
        fields = json.loads(path.read_text("utf-8"))
        return Threshold(float(fields["score"]), float(fields["whole"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexStateError(
            f"{str(path)!r} is damaged ({error}). Bring the index up to date: kraq update DIR CORPUS"
        ) from error


def has_threshold(index: Index) -> bool:
    """Whether the index stores a threshold that can be read."""
    try:
        return read_threshold(index) is not None
    except IndexStateError:
        return False


def packaged_points() -> list[Point]:
    """The packaged questions as an index embeds them."""
    return [Point(content_id("text", text), text) for text in (*FOREIGN, *ABOUT_THE_WHOLE)]


def _vectors_of_packaged(index: Index, embedder: Embedder) -> tuple[Vectors, Vectors]:
    """The vectors of FOREIGN and of ABOUT_THE_WHOLE.

    The index keeps them: they are the same after every change, and are most of what is encoded for a small one.
    """
    points = packaged_points()
    ids = [point.id for point in points]
    store, encode = index.vectors_named(PACKAGED), partial(_encoded, embedder)
    sync_vectors(store, ids, points, encode, "embed foreign questions", SilentProgress())

    vectors = store.vectors(ids)
    return vectors[: len(FOREIGN)], vectors[len(FOREIGN) :]


_BY_PACKAGED_ENCODER: dict[tuple[str, tuple[str, ...]], Vectors] = {}


def _encoded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Each packaged encoder encodes them once in a process: its name says all that its vectors depend on."""
    if not isinstance(embedder, PackagedEmbedder):
        return embedder.encode_queries(texts)

    key = embedder.name, tuple(texts)
    if key not in _BY_PACKAGED_ENCODER:
        _BY_PACKAGED_ENCODER[key] = embedder.encode_queries(texts)
    return _BY_PACKAGED_ENCODER[key]


def _own_scores(index: Index, scorer: PassageScorer) -> NDArray[np.float64]:
    questions = index.questions(source="kraq")
    step = max(1, len(questions) // OWN_QUESTIONS)
    chosen = questions[::step]
    texts: Sequence[str] = [question.text for question in chosen]
    if not chosen:
        return np.zeros(0)
    vectors = index.question_vectors.vectors([question.id for question in chosen])
    return np.array([each.value for each in scorer(texts, vectors)])
