"""Makes Speculative RAG, its efficient form, and what that looks up, from an index and settings."""

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedStore
from kraq_dspy.build.prepare.calibrate import Calibration, CalibrationPlan, SeenFrom, calibrate
from kraq_dspy.build.prepare.instructed import Precomputation
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.models.lms.servers.prompt_scorer import make_prompt_scorer
from kraq_dspy.ports import InstructedEmbedder, Progress, QuestionFinder, Retriever
from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.presets import EfficientOptions, SpeculativeOptions
from kraq_dspy.programs.speculative.scoring import DrafterScore, KraqScore, Scorer, VoteScore, WangScore
from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG
from kraq_dspy.records import Question
from kraq_dspy.settings import Settings

if TYPE_CHECKING:
    from kraq_dspy.workspace.preparations import InstructedOptions

logger = logging.getLogger(__name__)


def make_scorer(name: str, settings: Settings) -> Scorer:
    """By its name in `SpeculativeOptions`. Raises ModelError for a verifier that cannot do "wang2024"."""
    if name == "wang2024":
        return WangScore(make_prompt_scorer(settings.role("verifier")))
    return {"kraq": KraqScore, "drafter_only": DrafterScore, "vote": VoteScore}[name]()


def make_speculative(
    settings: Settings,
    retrieve: Retriever,
    options: SpeculativeOptions | None = None,
    *,
    embedder: InstructedEmbedder | None = None,
) -> SpeculativeRAG:
    """Without `embedder`, the one of the settings' section [instructed]."""
    options = options or SpeculativeOptions()
    return SpeculativeRAG(
        retrieve,
        embedder or load_instructed_embedder(settings.instructed),
        **dataclasses.asdict(options.sizes),
        scorer=make_scorer(options.scorer, settings),
        seed=options.seed,
    )


def make_efficient(
    index: Index,
    settings: Settings,
    retrieve: Retriever,
    questions: QuestionFinder,
    options: EfficientOptions | None = None,
    *,
    embedder: InstructedEmbedder | None = None,
) -> EfficientSpeculativeRAG:
    """As `make_speculative`, over what `kraq precompute` stored.

    Without the option `min_similarity`, the threshold that `kraq calibrate` found; where it was not run, every proxy is
    used. Raises IndexStateError for an index without questions or without pre-computed embeddings, EncoderMismatchError
    if another encoder made them; each names the command that mends it.
    """
    if index.count(Question) == 0:
        raise IndexStateError(
            f"{str(index.path)!r} has no questions that could stand in for yours. Finish the build "
            f"(kraq index CORPUS --out {index.path}), then run: kraq precompute {index.path}"
        )
    options = options or EfficientOptions()
    embedder = embedder or load_instructed_embedder(settings.instructed)
    return EfficientSpeculativeRAG(
        retrieve,
        questions,
        InstructedStore.open(index.path / INSTRUCTED, embedder=embedder),
        embedder,
        min_similarity=_threshold(index, embedder) if options.min_similarity is None else options.min_similarity,
        **dataclasses.asdict(options.sizes),
        scorer=make_scorer(options.scorer, settings),
        seed=options.seed,
    )


@contextmanager
def precomputation(index: Index, settings: Settings, options: "InstructedOptions") -> Iterator[Precomputation]:
    """What `kraq precompute` runs: `estimate()`, then `run(progress)`. The index must be open for writing."""
    work = Precomputation.of(
        index,
        load_instructed_embedder(settings.instructed),
        top_n=options.top_n,
        precision="int8" if options.int8 else "float16",
        source=None if options.questions == "all" else options.questions,
    )
    try:
        yield work
    finally:
        work.store.close()


def calibrate_index(
    index: Index,
    retrieve: Retriever,
    questions: QuestionFinder,
    settings: Settings,
    plan: CalibrationPlan,
    *,
    user_questions: Sequence[str] | None = None,
    source: str = "kraq",
    progress: Progress | None = None,
) -> Calibration:
    """What `kraq calibrate` runs; the result goes into the manifest. The index must be open for writing."""
    embedder = load_instructed_embedder(settings.instructed)
    stored = _stored_embeddings(index, embedder)
    try:
        calibration = calibrate(
            index.questions(source=source),
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
    index.update_manifest(proxy=calibration.to_dict())
    return calibration


def _stored_embeddings(index: Index, embedder: InstructedEmbedder) -> InstructedStore | None:
    """What `kraq precompute` made with this encoder; None where it made nothing yet, or another encoder did."""
    path = index.path / INSTRUCTED
    if not path.is_file():
        return None
    try:
        return InstructedStore.open(path, embedder=embedder)
    except IndexStateError as error:
        logger.info("Calibration embeds everything itself: %s", error)
        return None


def _threshold(index: Index, embedder: InstructedEmbedder) -> float:
    proxy = index.manifest.proxy
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
