"""Declares every retriever of this library, each once; what a retriever needs is imported when one is made."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from kraq_dspy.errors import ConfigError
from kraq_dspy.programs.shared.options import option
from kraq_dspy.workspace.preparations import GRAPH, RAPTOR
from kraq_dspy.workspace.specs import NoOptions, Registry, RetrieverSpec

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.ports import Retriever
    from kraq_dspy.workspace.workspace import Workspace


@dataclass(frozen=True)
class HybridOptions:
    weight: float = option(0.5, "Of meaning; the rest is of words (K2RAG's lambda, .8 there).", least=0, most=1)
    okapi: float = option(0.0, "Of the BM25 score, on top.", least=0)
    pool: int = option(50, "Candidates from each side.", least=1)


@dataclass(frozen=True)
class FusionOptions:
    pool: int = option(100, "Candidates from each side.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


@dataclass(frozen=True)
class MMROptions:
    over: str = option("dense", "The retriever that finds the candidates.")
    balance: float = option(0.7, "From 0 (unlike each other) to 1 (like the question).", least=0, most=1)
    pool: int = option(50, "Candidates.", least=1)


@dataclass(frozen=True)
class CombinedRetrieverOptions:
    over: str = option("dense", "The retriever that each question is asked of.")
    n: int = option(2, "Auxiliary questions.", least=1)
    alpha: float | Literal["auto"] = option(
        0.5, "Share of the passages found by your question; auto: by the shape of its scores.", least=0, most=1
    )
    strict: bool = option(False, "Retrieve the paper's count, which loses what its two floors cut off.")
    questions: Literal["kraq", "random"] = option("kraq", "Auxiliary questions: kraq, or random (a baseline).")


@dataclass(frozen=True)
class BridgeOptions:
    over: str = option("dense", "The retriever that finds the first passages.")
    share: float = option(0.7, "Of the budget that the first passages take.", least=0, most=1)
    n_communities: int = option(3, "Communities whose other passages follow.", least=1)


@dataclass(frozen=True)
class PageRankOptions:
    over: str = option("hybrid", "The retriever whose hits the walk starts from.")
    share: float = option(0.6, "Of the budget that the walk starts from.", least=0, most=1)
    damping: float = option(0.5, "Probability of walking on.", least=0, most=1)
    sharpness: float = option(3.0, "How much more a better hit counts at the start.", least=0)


@dataclass(frozen=True)
class AdaptiveOptions:
    walk: float = option(0.6, "The largest weight of the walk over the graph, 0 for none.", least=0, most=1)
    pool: int = option(50, "Candidates from each side.", least=1)
    start: int = option(20, "Hits that the walk starts from.", least=1)
    sharpness: float = option(10.0, "How much more a better hit counts at the start.", least=0)
    damping: float = option(0.8, "Probability of walking on.", least=0, most=1)
    weight: float = option(0.4, "Of meaning in the search before the walk; the rest is of words.", least=0, most=1)
    okapi: float = option(0.08, "Of the BM25 score in that search, on top.", least=0)


def _adaptive(space: "Workspace", options: AdaptiveOptions) -> "Retriever":
    from kraq_dspy.programs.retrievers import AdaptiveRetriever

    return AdaptiveRetriever(
        space.retriever("hybrid", weight=options.weight, okapi=options.okapi),
        space.passage_graph,
        space.index,
        most=options.walk,
        pool=options.pool,
        start=options.start,
        sharpness=options.sharpness,
        damping=options.damping,
    )


@dataclass(frozen=True)
class SentenceWindowOptions:
    window: int | None = option(2, "Sentences on either side; none for the whole passage.", least=0)


@dataclass(frozen=True)
class MetadataFilterOptions:
    over: str = option("hybrid", "The retriever that is asked with the filters.")


@dataclass(frozen=True)
class RerankedOptions:
    over: str = option("hybrid", "The retriever that finds the candidates.")
    balance: float = option(0.9, "Of the candidate's own score; the rest is of its questions.", least=0, most=1)
    pool: int = option(50, "Candidates.", least=1)


def _reranked(space: "Workspace", options: RerankedOptions) -> "Retriever":
    from kraq_dspy.programs.retrievers import QuestionSimilarityReranker, RerankingRetriever

    rerank = QuestionSimilarityReranker(
        space.communities, space.index.question_vectors, space.embedder, balance=options.balance
    )
    return RerankingRetriever(space.retriever(options.over), rerank, pool=options.pool)


@dataclass(frozen=True)
class CrossEncoderOptions:
    model: str = option(help="A hub name or a folder of the cross-encoder.")
    over: str = option("hybrid", "The retriever that finds the candidates.")
    pool: int = option(50, "Candidates.", least=1)


def _cross_encoder(space: "Workspace", options: CrossEncoderOptions) -> "Retriever":
    from kraq_dspy.models.embedders.cross_encoder import CrossEncoderReranker
    from kraq_dspy.programs.retrievers import RerankingRetriever

    return RerankingRetriever(space.retriever(options.over), CrossEncoderReranker(options.model), pool=options.pool)


@dataclass(frozen=True)
class RewrittenOptions:
    over: str = option("dense", "The retriever that each search is asked of.")
    pool: int = option(30, "Hits of each search.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


@dataclass(frozen=True)
class VariedOptions(RewrittenOptions):
    count: int = option(4, "Searches besides the question.", least=1)


@dataclass(frozen=True)
class DiverseOptions(RewrittenOptions):
    adaptive: bool = option(True, "Let the model choose among the rewritings.")


def _rewritten(step: "Callable[[Any, Any], dspy.Module]") -> "Callable[[Workspace, Any], Retriever]":
    """Makes a retriever over what a step writes; `step` makes that of the module of rewritings and the options."""

    def make(space: "Workspace", options: RewrittenOptions) -> "Retriever":
        from kraq_dspy.programs.retrievers import RewrittenRetriever, rewriting

        retrieve, rewrite = space.retriever(options.over), step(rewriting, options)
        return RewrittenRetriever(retrieve, rewrite, pool=options.pool, constant=options.constant)

    return make


def _raptor(mode: str) -> "Callable[[Workspace, NoOptions], Retriever]":
    def make(space: "Workspace", options: NoOptions) -> "Retriever":
        from kraq_dspy.programs.retrievers import RaptorRetriever

        tree, summaries = space.summary_tree
        return RaptorRetriever(space.index, space.index.chunk_vectors, space.embedder, tree, summaries, mode=mode)

    return make


@dataclass(frozen=True)
class EntityReportOptions:
    n_entities: int = option(30, "Entities looked up.", least=1)
    level: int = option(2, "Level of the reports, or broader; 0 is the broadest.", least=0)


@dataclass(frozen=True)
class ReportOptions:
    level: int | None = option(None, "Level of the reports, 0 is the broadest; none for all.", least=0)


def _reports(space: "Workspace", options: ReportOptions) -> "Retriever":
    from kraq_dspy.programs.retrievers import ReportRetriever

    deepest = space.index.deepest_level()
    if options.level and options.level > deepest:
        raise ConfigError(f"The level of the reports is {options.level}; the deepest of this index is {deepest}.")
    return ReportRetriever(space.report_vectors, space.graph, level=options.level)


def _spec(
    name: str,
    help: str,
    class_name: str,
    parts: Callable[[Any, Any], Sequence[Any]],
    options: type = NoOptions,
    **more: Any,
) -> RetrieverSpec:
    """A class of `programs.retrievers` that is made of `parts(space, options)`, and of its options by their own names.
    What chooses a part (`over`, `questions`) is none of them."""

    def make(space: "Workspace", chosen: Any) -> "Retriever":
        from kraq_dspy.programs import retrievers

        own = {key: value for key, value in asdict(chosen).items() if key not in ("over", "questions")}
        retriever: Retriever = getattr(retrievers, class_name)(*parts(space, chosen), **own)
        return retriever

    return RetrieverSpec(name, help, make, class_name, options, **more)


def _passages(space: "Workspace", options: Any) -> "Sequence[Any]":
    return space.index, space.index.chunk_vectors, space.embedder


RETRIEVERS = Registry(
    RetrieverSpec,
    "retriever",
    "kraq_dspy.retrievers",
    [
        _spec("dense", "Passages with the nearest embeddings: the papers' baseline.", "DenseRetriever", _passages),
        _spec(
            "bm25", "Exact names and terms, without an encoder.", "BM25Retriever",
            lambda space, _: (space.index, space.index.chunk_vectors),
        ),
        _spec(
            "hybrid", "Cosines of meaning and of words, weighted.", "HybridRetriever", _passages, HybridOptions,
            source="K2RAG paper, equations 3 and 4",
        ),
        _spec(
            "fusion", "Ranks by meaning and by words, fused.", "FusionRetriever",
            lambda space, _: ([space.retriever("dense"), space.retriever("bm25")],), FusionOptions,
            source="Cormack et al., 2009",
        ),
        _spec(
            "mmr", "Passages that are unlike each other.", "MMRRetriever",
            lambda space, options: (space.retriever(options.over), space.index.chunk_vectors, space.embedder),
            MMROptions, source="Carbonell and Goldstein, 1998",
        ),
        _spec(
            "combined", "With the question and its nearest KRAQ questions.", "CombinedRetriever",
            lambda space, options: (space.retriever(options.over), space.questions(options.questions)),
            CombinedRetrieverOptions, source="KRAQ paper, Algorithm 1",
        ),
        _spec(
            "bridge", "From the passages found to others of their communities.", "CommunityBridgeRetriever",
            lambda space, options: (
                space.retriever(options.over), space.communities, space.index.question_vectors,
                space.index.chunk_vectors, space.index, space.embedder,
            ),
            BridgeOptions,
        ),
        _spec(
            "pagerank", "Evidence over several steps: a walk over the graph.", "PageRankRetriever",
            lambda space, options: (space.retriever(options.over), space.passage_graph, space.index), PageRankOptions,
        ),
        RetrieverSpec(
            "adaptive", "Words, meaning and the graph, each as far as the scores call for it: start here.", _adaptive,
            "AdaptiveRetriever", AdaptiveOptions,
        ),
        _spec(
            "sentence-window", "Found by one sentence, handed over with those around it.", "SentenceWindowRetriever",
            lambda space, _: (space.index, space.sentence_vectors, space.embedder), SentenceWindowOptions,
        ),
        _spec(
            "metadata-filter", "Filtered by a date, a source or an entity that the question names.",
            "MetadataFilterRetriever", lambda space, options: (space.retriever(options.over), space.known_metadata),
            MetadataFilterOptions,
        ),
        RetrieverSpec(
            "reranked", "Reordered by the KRAQ questions of the passages' communities.", _reranked,
            "RerankingRetriever", RerankedOptions,
        ),
        RetrieverSpec(
            "cross-encoder", "Reordered by a cross-encoder: cross-encoder:MODEL.", _cross_encoder,
            "RerankingRetriever", CrossEncoderOptions, argument="model",
        ),
        RetrieverSpec(
            "qr-fusion", "The question and a model's rewriting of it, fused.",
            _rewritten(lambda steps, _: steps.Clarify()), "RewrittenRetriever", RewrittenOptions, source="QA-RAG paper",
        ),
        RetrieverSpec(
            "rag-fusion", "The question and several searches that a model writes, fused.",
            _rewritten(lambda steps, options: steps.Vary(options.count)), "RewrittenRetriever", VariedOptions,
            source="Rackauckas, 2024",
        ),
        RetrieverSpec(
            "dmqr", "Rewritings that keep more or less of the question, chosen by a model, fused.",
            _rewritten(lambda steps, options: steps.Diversify(options.adaptive)), "RewrittenRetriever", DiverseOptions,
            source="DMQR-RAG, Li et al., 2024",
        ),
        RetrieverSpec(
            "raptor", "Passages and summaries of their clusters, all levels at once.", _raptor("collapsed"),
            "RaptorRetriever", prepared=(RAPTOR,), source="Sarthi et al., 2024",
        ),
        RetrieverSpec(
            "raptor-traversal", "The same, from the top of the tree downwards.", _raptor("traversal"),
            "RaptorRetriever", prepared=(RAPTOR,), source="Sarthi et al., 2024",
        ),
        _spec(
            "graph-local", "Reports of the communities of entities near the question.", "EntityReportRetriever",
            lambda space, _: (space.entity_vectors, space.graph), EntityReportOptions, prepared=(GRAPH,),
            source="GraphRAG, local",
        ),
        RetrieverSpec(
            "graph-global", "Reports of communities nearest to the question.", _reports, "ReportRetriever",
            ReportOptions, prepared=(GRAPH,), source="GraphRAG, global",
        ),
    ],
)  # fmt: skip
