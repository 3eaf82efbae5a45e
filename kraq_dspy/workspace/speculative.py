"""Speculative RAG and Efficient Speculative RAG over an index, from settings and names."""

import logging
from collections.abc import Sequence

from kraq_dspy.config import Settings
from kraq_dspy.embedders.instructed import load_instructed_embedder
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.lms.servers.prompt_scorer import make_prompt_scorer
from kraq_dspy.ports import InstructedEmbedder, Progress, QuestionFinder, Retriever
from kraq_dspy.prepare.calibrate import Calibration, calibrate
from kraq_dspy.prepare.instructed import Precomputation
from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.presets import SPECULATIVE_PRESETS, SpeculativePreset
from kraq_dspy.programs.speculative.scoring import DrafterScore, KraqScore, Scorer, VoteScore, WangScore
from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG
from kraq_dspy.records import Question
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.instructed import INSTRUCTED, InstructedStore, Precision

logger = logging.getLogger(__name__)

SCORERS = ("kraq", "wang2024", "drafter_only", "vote")


def make_scorer(name: str, settings: Settings) -> Scorer:
    """One of SCORERS. Raises ConfigError for another name, ModelError for a verifier that cannot do "wang2024"."""
    if name == "wang2024":
        return WangScore(make_prompt_scorer(settings.role("verifier")))
    plain: dict[str, type[Scorer]] = {"kraq": KraqScore, "drafter_only": DrafterScore, "vote": VoteScore}
    if name not in plain:
        raise ConfigError(f"There is no scorer {name!r}; there are: {', '.join(SCORERS)}.")
    return plain[name]()


def make_speculative(
    retrieve: Retriever,
    models: LanguageModels,
    *,
    embedder: InstructedEmbedder | None = None,
    preset: str | None = None,
    n: int | None = None,
    k: int | None = None,
    m: int | None = None,
    scorer: str = "kraq",
    seed: int = 0,
) -> SpeculativeRAG:
    """The program with the models of the roles "drafter" and "verifier".

    `preset` names a data set of the papers; `n`, `k` and `m` override it. Without `embedder`, the one of the settings'
    section [instructed]. Raises ConfigError for an unknown preset or scorer.
    """
    sizes = preset_of(preset, n, k, m)
    program = SpeculativeRAG(
        retrieve,
        embedder or load_instructed_embedder(models.settings.instructed),
        n=sizes.n,
        k=sizes.k,
        m=sizes.m,
        scorer=make_scorer(scorer, models.settings),
        seed=seed,
    )
    program.set_models(drafter=models["drafter"], verifier=models["verifier"])
    return program


def make_efficient(
    index: Index,
    retrieve: Retriever,
    questions: QuestionFinder,
    models: LanguageModels,
    *,
    embedder: InstructedEmbedder | None = None,
    min_similarity: float | None = None,
    preset: str | None = None,
    n: int | None = None,
    k: int | None = None,
    m: int | None = None,
    scorer: str = "kraq",
    seed: int = 0,
) -> EfficientSpeculativeRAG:
    """As `make_speculative`, over what `kraq precompute` stored.

    Without `min_similarity`, the threshold that `kraq calibrate` found; where it was not run, every proxy is used.
    Raises IndexStateError for an index without questions or without pre-computed embeddings, EncoderMismatchError if
    another encoder made them; each names the command that mends it.
    """
    if index.count(Question) == 0:
        raise IndexStateError(
            f"{str(index.path)!r} has no questions that could stand in for yours. Finish the build "
            f"(kraq index CORPUS --out {index.path}), then run: kraq precompute {index.path}"
        )
    embedder = embedder or load_instructed_embedder(models.settings.instructed)
    sizes = preset_of(preset, n, k, m)
    program = EfficientSpeculativeRAG(
        retrieve,
        questions,
        InstructedStore.open(index.path / INSTRUCTED, embedder=embedder),
        embedder,
        min_similarity=_threshold(index, embedder) if min_similarity is None else min_similarity,
        n=sizes.n,
        k=sizes.k,
        m=sizes.m,
        scorer=make_scorer(scorer, models.settings),
        seed=seed,
    )
    program.set_models(drafter=models["drafter"], verifier=models["verifier"])
    return program


def make_precomputation(
    index: Index,
    settings: Settings,
    *,
    top_n: int | None = 100,
    precision: Precision = "float16",
    source: str | None = None,
) -> Precomputation:
    """What `kraq precompute` runs: `estimate()`, then `run(progress)`. The index must be open for writing."""
    embedder = load_instructed_embedder(settings.instructed)
    return Precomputation.of(index, embedder, top_n=top_n, precision=precision, source=source)


def calibrate_index(
    index: Index,
    retrieve: Retriever,
    questions: QuestionFinder,
    settings: Settings,
    *,
    asked: Sequence[str] | None = None,
    n: int = 10,
    k: int = 2,
    wanted: float = 0.5,
    n_questions: int = 50,
    source: str = "kraq",
    progress: Progress | None = None,
) -> Calibration:
    """What `kraq calibrate` runs; the result goes into the manifest. The index must be open for writing."""
    found = calibrate(
        index.questions(source=source),
        index.question_vectors,
        retrieve,
        load_instructed_embedder(settings.instructed),
        asked=asked,
        encode=questions.encode,
        n=n,
        k=k,
        wanted=wanted,
        n_questions=n_questions,
        progress=progress,
    )
    index.update_manifest(proxy=found.to_dict())
    return found


def preset_of(preset: str | None, n: int | None, k: int | None, m: int | None) -> SpeculativePreset:
    """The preset with what is given over it; TriviaQA's without one. Raises ConfigError for an unknown name."""
    if preset is not None and preset not in SPECULATIVE_PRESETS:
        raise ConfigError(f"There is no preset {preset!r}; there are: {', '.join(SPECULATIVE_PRESETS)}.")
    base = SPECULATIVE_PRESETS[preset or "triviaqa"]
    return SpeculativePreset(n=base.n if n is None else n, k=base.k if k is None else k, m=base.m if m is None else m)


def _threshold(index: Index, embedder: InstructedEmbedder) -> float:
    proxy = index.manifest.proxy
    if not proxy:
        logger.info(
            "Not calibrated: the nearest question stands in, however far. To guard: kraq calibrate %s", index.path
        )
        return -1.0
    if proxy.get("encoder_name") != embedder.name:
        logger.warning(
            "Calibrated with %s, not with %s; run kraq calibrate again", proxy["encoder_name"], embedder.name
        )
        return -1.0
    return float(proxy["threshold"])
