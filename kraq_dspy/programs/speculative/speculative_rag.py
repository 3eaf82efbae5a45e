"""Drafts several answers from different evidence, of which a verifier chooses one (Wang et al., 2024)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from time import perf_counter
from typing import Any, Literal, NamedTuple

import dspy

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.clock import announce
from kraq_dspy._internal.options import Positive, require_options
from kraq_dspy._internal.step import SignatureLike, fitting_step, further_inputs, prediction
from kraq_dspy.errors import ConfigError, ModelError, counted
from kraq_dspy.ports import Embedder, InstructedEmbedder, RetrieverLike, Space, Vectors
from kraq_dspy.programs.speculative.drafts import Draft, FailedDraft, write_draft
from kraq_dspy.programs.speculative.scoring import SCORERS, KraqScore, Score, Scorer, best
from kraq_dspy.programs.speculative.subsets import cluster, draw_subsets
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.in_memory import as_instructed
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.signatures import DraftAnswer
from kraq_dspy.spec import Note, ProgramSpec, option
from kraq_dspy.state import SavableModule


@dataclass(frozen=True, slots=True)
class SpeculativePreset:
    """`n` passages retrieved, in `k` clusters, for `m` drafts: `SpeculativeRAG(..., **dataclasses.asdict(preset))`."""

    n: Positive
    k: Positive
    m: Positive


SPECULATIVE_PRESETS = {
    "bioasq": SpeculativePreset(n=18, k=5, m=10),
    "hotpotqa": SpeculativePreset(n=10, k=4, m=8),
    "triviaqa": SpeculativePreset(n=10, k=2, m=5),
    "pubhealth": SpeculativePreset(n=10, k=2, m=5),
}
"""As in the thesis, 5.2.6."""
TRIVIAQA = SPECULATIVE_PRESETS["triviaqa"]


@dataclass(frozen=True)
class SpeculativeOptions:
    """Sizes of a data set of the papers (`preset`), each of which may be overruled; TriviaQA's without one."""

    n: int | None = option(None, "Passages to cluster (the papers' N).", least=1, counts="passages")
    k: int | None = option(None, "Their clusters.", least=1)
    m: int | None = option(None, "Drafts.", least=1)
    preset: Literal["bioasq", "hotpotqa", "triviaqa", "pubhealth"] | None = option(None, "Sizes as in the papers.")
    scorer: Literal["kraq", "wang2024", "vote"] = option(
        "kraq", "How a draft is chosen: by the papers' score, by Wang et al.'s probabilities, or by votes."
    )
    seed: int = option(0, "Random seed of the clusters and the subsets.", least=0)
    in_flight: int | None = option(None, "Drafts at work at once: all, or 1, so that each is timed alone.", least=1)

    def __post_init__(self) -> None:
        if self.k is not None and self.k > self.sizes.n:
            raise ConfigError(
                f"{counted(self.sizes.n, 'passage')} cannot be put into {self.k} clusters: lower the clusters."
            )

    def settings(self, space: Space) -> dict[str, Any]:
        """Return what the programs take by these names."""
        scorer = SCORERS[self.scorer](space, self.in_flight)
        return {**asdict(self.sizes), "scorer": scorer, "seed": self.seed, "in_flight": self.in_flight}

    @property
    def sizes(self) -> SpeculativePreset:
        own = {name: size for name in ("n", "k", "m") if (size := getattr(self, name)) is not None}
        return replace(SPECULATIVE_PRESETS[self.preset] if self.preset else TRIVIAQA, **own)


@dataclass(frozen=True)
class EfficientOptions(SpeculativeOptions):
    """The options of SpeculativeOptions, over what `kraq precompute` stored."""

    min_similarity: float = option(-1.0, "Least cosine at which a stored question replaces yours.", least=-1, most=1)
    questions: Literal["kraq", "random"] = option(
        "kraq", "Questions that may replace yours: kraq, or random (a baseline)."
    )


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """Seconds of one question, by stage.

    `draft_max` and `verify_max` are the longest single calls. `embed` is the encoder's time. `proxy` and `lookup` are
    stages of Efficient Speculative RAG. `wall` is the measured time from question to answer. `parallel_model` is the
    modeled latency of the KRAQ paper (appendix D.1): do not compare it with `wall`.
    """

    retrieve: float
    cluster: float
    draft_max: float
    verify_max: float
    select: float
    wall: float
    proxy: float = 0.0
    lookup: float = 0.0
    embed: float = 0.0

    @property
    def embed_and_cluster(self) -> float:
        """T_embed-cluster of the KRAQ thesis, 5.2.3: vectors by either way, clusters and subsets."""
        return self.proxy + self.lookup + self.embed + self.cluster

    @property
    def parallel_model(self) -> float:
        return self.retrieve + self.embed_and_cluster + self.draft_max + self.verify_max + self.select


@dataclass(frozen=True, slots=True)
class SeenPassages:
    """The hits' vectors as seen from a question, float32 `[n_hits, dimension]`, how long each way of getting them took
    (keys of StageSeconds) and what the prediction shall say about it."""

    vectors: Vectors
    seconds: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)


class _Evidence(NamedTuple):
    hits: tuple[Hit, ...]
    clusters: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    seconds: Mapping[str, float]
    facts: Mapping[str, Any]


class SpeculativeRAG(SavableModule):
    """Drafts several answers from different passages, and returns the draft with the best score.

    Args:
        retrieve: a retriever, or any function that takes a question and returns texts (`as_retriever`).
        embedder: embeds passages as seen from a question (`InstructedEmbedder`), or any sentence encoder.
        n: the number of passages to retrieve.
        k: the number of clusters, and of passages in a draft.
        m: the number of drafts.
        scorer: scores drafts; by default `KraqScore`.
        seed: the random seed of clusters and subsets.
        in_flight: the most concurrent model calls; None for all.
        signature: a signature, or instructions, for the step that drafts.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a number out of range.

    The program retrieves `n` passages, embeds the passages as seen from the question, and makes `k` clusters. It
    draws `m` subsets with one passage of each cluster, drafts an answer from each subset, and scores the drafts (KRAQ
    paper, 3.2 and appendix C).

    The drafter is `self.draft`. The verifier is a part of `self.scorer`. You can give each a model of its own
    (`set_lm`). The program skips drafts that fail. If all drafts fail, ModelError has the reasons. Without hits, the
    program makes one draft without evidence.

    The prediction has `answer`, `rationale`, `hits` (all retrieved passages), `evidence` (the passages of the chosen
    draft), `chosen` (the number of this draft), `drafts`, `scores` (logarithms, by draft number), `failures`,
    `clusters`, `subsets` (positions among `hits`), `scorer`, `scores_are` and `timings` (StageSeconds). `scores_are`
    is "measured", or "embedded" if the embedded model made up the log-probabilities behind them.

    >>> from kraq_dspy import Corpus, make_lm
    >>> corpus = Corpus.from_texts(["Ada lived in London.", "Byron wrote Don Juan.", "Charles lived in London."])
    >>> rag = SpeculativeRAG(corpus.retriever, corpus.embedder, n=2, k=1, m=2)
    >>> rag.set_lm(make_lm("embedded"))  # or dspy.LM("openai/gpt-4o-mini")
    >>> rag(question="Where did Ada live?").answer
    'London'
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        embedder: InstructedEmbedder | Embedder | dspy.Embedder,
        *,
        n: int = TRIVIAQA.n,
        k: int = TRIVIAQA.k,
        m: int = TRIVIAQA.m,
        scorer: Scorer | None = None,
        seed: int = 0,
        in_flight: int | None = None,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        require_options(SpeculativePreset, n=n, k=k, m=m)
        require_options(SpeculativeOptions, seed=seed, in_flight=in_flight)
        self.retrieve = as_retriever(retrieve)
        self.embedder = as_instructed(embedder)
        self.n, self.k, self.m = n, k, m
        self.seed, self.in_flight = seed, in_flight
        self.draft = fitting_step(DraftAnswer, signature, "passages")
        self.scorer = scorer or KraqScore()

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.draft, inputs, "passages")
        started = perf_counter()
        await announce("retrieving")
        evidence = await call(self._gather, question)
        wanted_by = self.scorer.name if self.scorer.needs_logprobs else None

        async def draft(numbered: tuple[int, tuple[int, ...]]) -> Draft | FailedDraft:
            number, subset = numbered
            await announce(f"drafting {number + 1} of {len(evidence.subsets)}")
            texts = [evidence.hits[position].chunk.passage for position in subset]
            return await write_draft(
                self.draft, question, texts, number=number, passages=subset, wanted_by=wanted_by, further=further
            )

        outcomes = await at_once(draft, list(enumerate(evidence.subsets)), limit=self.in_flight)

        drafts = [outcome for outcome in outcomes if isinstance(outcome, Draft)]
        await announce(f"choosing among {counted(len(drafts), 'draft')}")
        scores = await call(self.scorer, question=question, drafts=drafts) if drafts else []
        return self._choose(evidence, outcomes, drafts, scores, started)

    def find(self, question: str) -> tuple[list[Hit], Vectors | None]:
        """The hits, and the question's embedding if it was made on the way."""
        return self.retrieve(question, self.n), None

    def see(self, question: str, hits: Sequence[Hit], vector: Vectors | None) -> SeenPassages:
        """E(d|Q) of every hit, by the online encoder. `vector` is what `find` gave."""
        started = perf_counter()
        vectors = self.embedder.encode(question, [hit.chunk.passage for hit in hits])
        return SeenPassages(vectors, {"embed": perf_counter() - started})

    def _gather(self, question: str) -> _Evidence:
        """All that comes before the language models."""
        started = perf_counter()
        hits, vector = self.find(question)
        retrieved = perf_counter()
        passages = self.see(question, hits, vector)
        clustering = perf_counter()
        clusters = cluster(passages.vectors, self.k, seed=self.seed)
        subsets = draw_subsets(clusters, self.m, seed=self.seed)
        seconds = {**passages.seconds, "retrieve": retrieved - started, "cluster": perf_counter() - clustering}
        return _Evidence(tuple(hits), clusters, tuple(subsets), seconds, passages.facts)

    def _scores_are_invented(self) -> bool:
        """Whether log-probabilities score the drafts and a model gave them that has none: the embedded one."""
        if not self.scorer.needs_logprobs:
            return False
        predictors = (self.draft, *self.scorer.predictors())
        models = [predictor.lm or dspy.settings.lm for predictor in predictors]
        return any(getattr(lm, "model", "") == EMBEDDED for lm in models)

    def _choose(
        self,
        evidence: _Evidence,
        outcomes: Sequence[Draft | FailedDraft],
        drafts: Sequence[Draft],
        judged: Sequence[Score | FailedDraft],
        started: float,
    ) -> dspy.Prediction:
        selecting = perf_counter()
        failures = [outcome for outcome in (*outcomes, *judged) if isinstance(outcome, FailedDraft)]
        scored = [(draft, score) for draft, score in zip(drafts, judged, strict=True) if isinstance(score, Score)]
        if not scored:
            reasons = "; ".join(f"draft {failure.number}: {failure.reason}" for failure in failures)
            raise ModelError(f"None of {counted(len(outcomes), 'draft')} could be used. {reasons}")

        chosen, _ = scored[best([draft for draft, _ in scored], [score for _, score in scored])]
        end = perf_counter()
        timings = StageSeconds(
            **evidence.seconds,
            draft_max=max(outcome.seconds for outcome in outcomes),
            verify_max=max(score.seconds for score in judged),
            select=end - selecting,
            wall=end - started,
        )

        return prediction(
            chosen.extras,
            answer=chosen.response,
            rationale=chosen.rationale,
            hits=evidence.hits,
            evidence=tuple(evidence.hits[position] for position in chosen.passages),
            chosen=chosen.number,
            drafts=tuple(drafts),
            scores={draft.number: each for draft, each in scored},
            failures=tuple(failures),
            clusters=evidence.clusters,
            subsets=evidence.subsets,
            scorer=self.scorer.name,
            scores_are="embedded" if self._scores_are_invented() else "measured",
            timings=timings,
            **evidence.facts,
        )


def stage_seconds(prediction: dspy.Prediction) -> dict[str, float]:
    return asdict(prediction.timings)


DRAFTED = (
    "rationale", "evidence", "chosen", "drafts", "scores", "failures", "clusters", "subsets", "scorer", "scores_are",
)  # fmt: skip


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """The rationale, the drafts and the times; for the efficient program the question that stood in."""
    yield Note("because ", answer.rationale, 600, "strong")
    for draft in answer.drafts:
        mark = "→" if draft.number == answer.chosen else " "
        score = answer.scores.get(draft.number)
        total = f"{score.total:8.3f}" if score else "  failed"
        tone: Literal["found", "plain"] = "found" if draft.number == answer.chosen else "plain"
        yield Note(f"  {mark} draft {draft.number} {total} ", draft.response, 100, tone)

    if answer.get("scores_are") == "embedded":
        invented = "  the embedded model's log-probabilities are invented: these scores mean nothing"
        yield Note(invented, tone="doubtful")
    for failure in answer.failures:
        yield Note(f"  draft {failure.number} failed: ", failure.reason, 200, "doubtful")

    if "proxy_used" in answer:
        question = answer.proxy.question.text if answer.proxy_used and answer.proxy else "the question itself"
        counts = f"{answer.n_looked_up} looked up, {answer.n_embedded} embedded online"
        by = "their sentences, a variant of Algorithm 2" if answer.seen_by.startswith("sentences") else answer.seen_by
        yield Note(f"passages seen from ({counts}, by {by}): ", question, 120)

    times = answer.timings
    yield Note(f"ms: {1000 * times.wall:.1f}; papers' model {1000 * times.parallel_model:.1f}")


SPECULATIVE = ProgramSpec(
    "speculative",
    "Clusters the passages, drafts from diverse subsets at once, verifies, chooses.",
    lambda space, retrieve, options: SpeculativeRAG(retrieve, space.instructed_embedder, **options.settings(space)),
    "SpeculativeRAG",
    SpeculativeOptions,
    role="drafter",
    roles={"scorer": "verifier"},
    budget=attrgetter("sizes.n"),
    calls_at_once=attrgetter("sizes.m"),
    settings=("instructed",),
    keys=DRAFTED,
    seconds=stage_seconds,
    notes=notes,
    source="Wang et al., 2024",
)
