"""Measures on the index itself when a stored question is near enough to stand in for the user's."""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.prepare.instructed import open_precomputed
from kraq_dspy.errors import ConfigError, IndexStateError, counted, needs
from kraq_dspy.models.embedders.instructed import WeightedSentences, load_instructed_embedder
from kraq_dspy.ports import (
    InstructedEmbedder,
    PrecomputedVectors,
    Progress,
    QuestionFinder,
    Retriever,
    SentenceVectors,
    SilentProgress,
    Vectors,
    VectorStore,
)
from kraq_dspy.programs.speculative.subsets import cluster
from kraq_dspy.records import Chunk, Question
from kraq_dspy.settings import Settings

logger = logging.getLogger(__name__)

STAGE = "calibrate"
RANKS = (1, 2, 5, 10, 25, 50)
"""Which neighbours of a question are tried in its place: near ones and far ones, so that all cosines occur."""


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """`k` clusters of the `n` passages of each of `n_questions`, compared with those from stored questions at `ranks`.

    `wanted` is the agreement that a proxy must reach. `seed` draws the questions and starts the clusters.
    """

    n: int = 10
    k: int = 2
    wanted: float = 0.5
    n_questions: int = 50
    ranks: Sequence[int] = RANKS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well the clusters from E(d|q*) agree with those from E(d|Q), by the cosine of q* and Q.

    `curve` is the agreement (adjusted Rand index) expected from a cosine, by isotonic regression of `n_pairs` that were
    tried, up to the cosine `nearest`. `threshold` is the least cosine at which it reaches `wanted`. `noise_floor` is
    the agreement of two KMeans seeds on the same vectors: no proxy can be asked for more.
    """

    wanted: float
    threshold: float
    noise_floor: float
    n: int
    k: int
    encoder_name: str
    n_pairs: int
    nearest: float
    curve: tuple[tuple[float, float], ...]

    def agreement_at(self, cosine: float) -> float:
        """The agreement expected at a cosine: from the curve, between its points linearly."""
        xs, ys = zip(*self.curve, strict=True)
        return float(np.interp(cosine, xs, ys))


class SeenFrom:
    """The vectors of chunks as seen from a question, E(d|q): stored ones are looked up, others made once."""

    def __init__(self, embedder: InstructedEmbedder, stored: PrecomputedVectors | None = None) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._stored = stored
        self._made: dict[tuple[str, str], Vectors] = {}

    def __call__(self, question_id: str | None, question: str, chunks: Sequence[Chunk]) -> Vectors:
        """float32 `[n_chunks, dimension]`; `question_id` None for a question that is not stored."""
        if self._stored is not None and question_id is not None:
            vectors, is_stored = self._stored.lookup(question_id, [chunk.id for chunk in chunks])
            if is_stored.all():
                return vectors
        missing = [chunk for chunk in chunks if (question, chunk.id) not in self._made]
        if missing:
            encoded = self._embedder.encode(question, [chunk.passage for chunk in missing])
            self._made.update({(question, chunk.id): vector for chunk, vector in zip(missing, encoded, strict=True)})
        return np.stack([self._made[question, chunk.id] for chunk in chunks])


def calibrate(
    questions: Sequence[Question],
    question_vectors: VectorStore,
    retrieve: Retriever,
    seen_from: SeenFrom,
    plan: CalibrationPlan | None = None,
    *,
    user_questions: Sequence[str] | None = None,
    encode: Callable[[str], Vectors] | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Cluster the passages of some questions as seen from their proxies and from themselves, and compare.

    The questions are `user_questions` where there are any (`encode` embeds one among the stored), or else a sample of
    the stored ones, each kept from being its own proxy. That takes at most `n * (1 + len(ranks))` encoder passes for
    each of `n_questions`: none for what is stored, and one for a passage that is met again with the same question.

    Raises IndexStateError when the index has fewer than two questions.
    """
    plan = plan or CalibrationPlan()
    n, k, seed = plan.n, plan.k, plan.seed
    if len(questions) < 2:
        raise IndexStateError(
            f"The index has {counted(len(questions), 'question')}; calibration compares at least two. Index a larger "
            "corpus."
        )
    progress = progress or SilentProgress()
    known = {question.id: question for question in questions}
    users: list[tuple[str | None, str, Vectors]]  # (its own id if it is stored, text, embedding)
    if user_questions is None:
        by_id = sorted(questions, key=lambda question: question.id)
        sample = random.Random(seed).sample(by_id, min(plan.n_questions, len(by_id)))
        embedded = question_vectors.vectors([question.id for question in sample])
        users = [(question.id, question.text, vector) for question, vector in zip(sample, embedded, strict=True)]
    elif encode is None:
        raise ValueError("Questions that are not stored must be embedded: give `encode` with `user_questions`.")
    else:
        texts = random.Random(seed).sample(list(user_questions), min(plan.n_questions, len(user_questions)))
        users = [(None, text, encode(text)) for text in texts]
    progress.start(STAGE, len(users))
    points: list[tuple[float, float]] = []
    floors: list[float] = []
    for own_id, text, vector in users:
        chunks = [hit.chunk for hit in retrieve(text, n)]
        if len(chunks) > k:  # else every passage is its own cluster, and all agree
            vectors = seen_from(own_id, text, chunks)
            own = cluster(vectors, k, seed=seed)
            floors.append(agreement(own, cluster(vectors, k, seed=seed + 1)))
            exclude = () if own_id is None else (own_id,)
            [hits] = question_vectors.search(vector[None, :], max(plan.ranks), exclude=exclude)
            neighbours = [(known[one], cosine) for one, cosine in hits if one in known]
            for rank in plan.ranks:
                if rank <= len(neighbours):
                    proxy, cosine = neighbours[rank - 1]
                    clusters = cluster(seen_from(proxy.id, proxy.text, chunks), k, seed=seed)
                    points.append((cosine, agreement(own, clusters)))
        progress.advance(STAGE)
    progress.finish(STAGE)
    if not points:
        raise IndexStateError(
            f"No question finds more than {k} passages, which make {k} clusters by themselves. Index a larger corpus, "
            "or ask for fewer clusters."
        )
    curve = _isotonic(points)
    threshold = next(cosine for cosine, expected in curve if expected >= plan.wanted)
    nearest, floor = max(cosine for cosine, _ in points), float(np.mean(floors))
    return Calibration(plan.wanted, threshold, floor, n, k, seen_from.name, len(points), nearest, curve)


def agreement(first: Sequence[int], second: Sequence[int]) -> float:
    """Adjusted Rand index of two partitions of the same passages: 1 for equal ones, about 0 for unrelated ones."""
    with needs("scikit-learn", "embedded", "Comparing clusters"):
        from sklearn.metrics import adjusted_rand_score
    return float(adjusted_rand_score(first, second))


def _isotonic(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The rising curve nearest to the points, by its steps' ends. It ends in (1, 1): the same question, the same
    vectors."""
    from sklearn.isotonic import IsotonicRegression

    cosines, agreements = np.array(sorted(points)).T
    fitted = IsotonicRegression(y_min=-1.0, y_max=1.0).fit(cosines, agreements)
    curve = zip(fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist(), strict=True)
    return (*((cosine, expected) for cosine, expected in curve if cosine < 1.0), (1.0, 1.0))


def calibrate_index(
    index: Index,
    retrieve: Retriever,
    questions: QuestionFinder,
    settings: Settings,
    plan: CalibrationPlan,
    *,
    user_questions: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """What `kraq calibrate` runs; the result goes into the manifest. The index must be open for writing.

    Raises ConfigError for an encoder that sees passages from any question, for which none stands in.
    """
    embedder = load_instructed_embedder(settings.instructed)
    if isinstance(embedder, WeightedSentences):
        raise ConfigError(
            'There is nothing to calibrate: with [instructed] kind = "sentences" passages are seen from the user\'s '
            "own question, and no stored one stands in."
        )
    try:
        stored = open_precomputed(index, embedder)
    except IndexStateError as error:
        logger.info("Calibration embeds everything itself: %s", error)
        stored = None
    assert not isinstance(stored, SentenceVectors)
    try:
        calibration = calibrate(
            index.questions(source="kraq"),
            index.question_vectors,
            retrieve,
            SeenFrom(embedder, stored),
            plan,
            user_questions=user_questions,
            encode=questions.encode,
            progress=progress,
        )
    finally:
        if stored is not None:
            stored.close()
    index.update_manifest(proxy=asdict(calibration))
    return calibration


def proxy_threshold(index: Index, embedder: InstructedEmbedder) -> float:
    """The cosine that `kraq calibrate` found for this encoder; -1.0 where it found none: every proxy is used."""
    proxy: dict[str, Any] = index.manifest.proxy
    if not proxy:
        logger.info(
            "Not calibrated: the nearest question stands in, however far. To guard: kraq calibrate %s", index.path
        )
        return -1.0
    if proxy.get("encoder_name") != embedder.name:
        logger.warning(
            "Calibrated with %s, not with %s; run kraq calibrate again", proxy.get("encoder_name"), embedder.name
        )
        return -1.0
    try:
        return float(proxy["threshold"])
    except (KeyError, TypeError, ValueError) as error:
        raise IndexStateError(f"The calibration of {str(index.path)!r} is damaged. Run: kraq calibrate") from error
