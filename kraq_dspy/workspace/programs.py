"""Declares every question-answering program of this library, each once; what one needs is imported when it is made."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from kraq_dspy.programs.combined_options import EXPLAIN, CombinedOptions
from kraq_dspy.programs.shared.options import option
from kraq_dspy.programs.speculative.presets import EfficientOptions, SpeculativeOptions
from kraq_dspy.workspace import shown
from kraq_dspy.workspace.preparations import GRAPH, INSTRUCTED, QA_PAIRS, SUMMARISED
from kraq_dspy.workspace.specs import ProgramSpec, Registry

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.ports import Retriever
    from kraq_dspy.workspace.workspace import Workspace


@dataclass(frozen=True)
class TraditionalOptions:
    k: int = option(15, "Passages.", least=1, counts="passages")
    explain: bool = option(False, EXPLAIN)


def _traditional(space: "Workspace", retrieve: "Retriever", options: TraditionalOptions) -> "dspy.Module":
    from kraq_dspy.programs.traditional import TraditionalRAG

    return TraditionalRAG(retrieve, k=options.k, explain=options.explain)


def _combined(space: "Workspace", retrieve: "Retriever", options: CombinedOptions) -> "dspy.Module":
    from kraq_dspy.programs.combined import CombinedRetrieveRAG

    sizes = {name: value for name, value in asdict(options).items() if name != "questions"}
    return CombinedRetrieveRAG(retrieve, space.questions(options.questions), **sizes)


def _speculative(space: "Workspace", retrieve: "Retriever", options: SpeculativeOptions) -> "dspy.Module":
    from kraq_dspy.build.prepare.speculative import make_speculative

    return make_speculative(space.models.settings, retrieve, options)


def _efficient(space: "Workspace", retrieve: "Retriever", options: EfficientOptions) -> "dspy.Module":
    from kraq_dspy.build.prepare.speculative import make_efficient

    return make_efficient(space.index, space.models.settings, retrieve, space.questions(options.questions), options)


def _twice_the_drafts(options: SpeculativeOptions) -> int:
    return 2 * options.sizes.m


@dataclass(frozen=True)
class GraphContextOptions:
    k: int = option(15, "Passages at most.", least=1, counts="passages")
    n_entities: int = option(10, "Entities nearest to the question.", least=1)
    level: int = option(2, "Level of the reports, or broader; 0 is the broadest.", least=0, counts="levels")
    tokens: int = option(8000, "Of the prompt: 15 % reports, 35 % graph, the rest passages.", least=1)


def _graph_local(space: "Workspace", part: None, options: GraphContextOptions) -> "dspy.Module":
    from kraq_dspy.programs.graph.graph_local_search import GraphLocalSearch

    return GraphLocalSearch(space.entity_vectors, space.graph, **asdict(options))


@dataclass(frozen=True)
class GraphGlobalOptions:
    k: int = option(100, "Reports, nearest to the question first.", least=1, counts="reports")
    tokens: int = option(8000, "Of each batch of reports, and of the points.", least=1)
    level: int = option(0, "Level of the reports, 0 is the broadest.", least=0, counts="levels")


def _graph_global(space: "Workspace", part: None, options: GraphGlobalOptions) -> "dspy.Module":
    from kraq_dspy.programs.graph.graph_global_search import GraphGlobalSearch

    return GraphGlobalSearch(space.retriever("graph-global", level=options.level), k=options.k, tokens=options.tokens)


@dataclass(frozen=True)
class QARAGOptions:
    k: int = option(10, "Passages.", least=1, counts="passages")
    variant: Literal["v", "type1", "type2"] = option(
        "type2", "v (no plug-ins), type1 (both), type2 (and the answer is judged)."
    )

    @property
    def has_plug_ins(self) -> bool:
        return self.variant != "v"


def _qa_rag(space: "Workspace", retrieve: "Retriever", options: QARAGOptions) -> "dspy.Module":
    from kraq_dspy.build.prepare.qa_pairs import StoredPairs
    from kraq_dspy.programs.qa_rag.program import QARAG

    return QARAG(retrieve, StoredPairs(space.index.results), k=options.k, variant=options.variant)


@dataclass(frozen=True)
class K2RAGOptions:
    k: int = option(10, "Passages for each sub-question.", least=1, counts="passages")
    weight: float = option(0.8, "Of meaning in the hybrid search; the rest is of words.", least=0, most=1)
    topics: Literal["near", "wide"] = option(
        "near", "The graph tells of the entities near the question, or of themes of the whole corpus too (wide)."
    )
    search: Literal["hybrid", "fusion", "mmr"] = option(
        "hybrid", "For sub-questions: hybrid (the paper's), fusion of both rankings, mmr (passages unlike each other)."
    )


def _k2rag(space: "Workspace", part: None, options: K2RAGOptions) -> "dspy.Module":
    from kraq_dspy.build.prepare.graph import IndexGraph, entity_vectors, report_vectors
    from kraq_dspy.build.prepare.k2rag import shortener
    from kraq_dspy.programs.k2rag import K2RAG, KnowledgeGraph
    from kraq_dspy.programs.retrievers import ReportRetriever

    corpus = space.summarised
    knowledge = themes = None
    if corpus.has_graph:
        graph = IndexGraph(corpus.index)
        if options.topics == "wide" and corpus.has_reports:
            themes = ReportRetriever(report_vectors(corpus.index, space.embedder), graph)
        knowledge = KnowledgeGraph(entity_vectors(corpus.index, space.embedder), graph, themes=themes)
    retrieve = _summarised_search(space, options)
    return K2RAG(knowledge, retrieve, shortener(space.models.settings.k2rag, share=K2RAG.SHARE), k=options.k)


def _summarised_search(space: "Workspace", options: K2RAGOptions) -> "Retriever":
    """What finds passages of the summarised corpus."""
    from kraq_dspy.programs.retrievers import (
        BM25Retriever,
        DenseRetriever,
        FusionRetriever,
        HybridRetriever,
        MMRRetriever,
    )

    corpus, embedder = space.summarised, space.embedder
    if options.search == "fusion":
        dense = DenseRetriever(corpus, corpus.vectors, embedder)
        return FusionRetriever([dense, BM25Retriever(corpus, corpus.vectors)])
    hybrid = HybridRetriever(corpus, corpus.vectors, embedder, weight=options.weight)
    return MMRRetriever(hybrid, corpus.vectors, embedder) if options.search == "mmr" else hybrid


@dataclass(frozen=True)
class NaiveOptions:
    k: int = option(10, "Passages.", least=1, counts="passages")


def _naive(retriever: str, **settings: float) -> "Callable[[Workspace, None, NaiveOptions], dspy.Module]":
    """Makes Traditional RAG over this retriever, whatever the index would choose."""

    def make(space: "Workspace", part: None, options: NaiveOptions) -> "dspy.Module":
        return _traditional(space, space.retriever(retriever, **settings), TraditionalOptions(options.k))

    return make


@dataclass(frozen=True)
class NaiveGraphOptions(GraphContextOptions):
    k: int = option(10, "Passages at most.", least=1, counts="passages")


def _naive_graph(space: "Workspace", part: None, options: NaiveGraphOptions) -> "dspy.Module":
    from kraq_dspy.programs.k2rag import KnowledgeGraph, NaiveGraphRAG

    return NaiveGraphRAG(KnowledgeGraph(space.entity_vectors, space.graph, **asdict(options)))


@dataclass(frozen=True)
class QASearchOptions:
    over: str = option("combined", "The program that answers where nothing is prepared.")
    block: int = option(100, "Catalogue questions that the model sees at once.", least=1)
    scan: Literal["narrow", "nearest", "full", "exhaustive"] = option(
        "narrow",
        "narrow (a block of the nearest questions), nearest (the one nearest, unasked), full (block by block up to a "
        "match) or exhaustive (all blocks).",
    )
    similarity: float = option(
        0.0, "Cosine similarity that a question needs to be looked at (narrow, nearest).", least=0, most=1
    )
    check: Literal["model", "rules", "none"] = option("model", "Against near-misses: model, rules or none.")
    collect: bool = option(True, "Note what cannot be answered, for review.")
    learn: Literal["no", "review", "serve"] = option(
        "no", "Take over answers that a validator finds right: for review, or served from then on."
    )


def _qa_search(space: "Workspace", program: "dspy.Module", options: QASearchOptions) -> "dspy.Module":
    from kraq_dspy.programs.qa_search.program import QASearch

    own = {name: value for name, value in asdict(options).items() if name != "over"}
    return QASearch(program, space.answers, **own)


def _stage_seconds(prediction: "dspy.Prediction") -> dict[str, float]:
    """Of `StageSeconds`, without the papers' model, which reports make of the stages themselves."""
    seconds: dict[str, Any] = asdict(prediction.timings)
    del seconds["parallel_model"]
    return seconds


_DRAFTED = (
    "rationale", "evidence", "chosen", "drafts", "scores", "failures", "clusters", "subsets", "scorer", "scores_are",
)  # fmt: skip

PROGRAMS = Registry(
    ProgramSpec,
    "program",
    "kraq_dspy.programs",
    [
        ProgramSpec(
            "traditional", "Retrieves once, with your question; the baseline.", _traditional, "TraditionalRAG",
            TraditionalOptions, lines=shown.explanation, source="KRAQ paper, section 3",
        ),
        ProgramSpec(
            "combined", "Retrieves with your question and its nearest KRAQ questions.", _combined,
            "CombinedRetrieveRAG", CombinedOptions, keys=("auxiliary_questions",), lines=shown.auxiliary_questions,
            source="KRAQ paper, Algorithm 1",
        ),
        ProgramSpec(
            "speculative", "Clusters the passages, drafts from diverse subsets at once, verifies, chooses.",
            _speculative, "SpeculativeRAG", SpeculativeOptions, role="drafter", roles={"scorer": "verifier"},
            budget=attrgetter("sizes.n"), calls_at_once=attrgetter("sizes.m"), calls=_twice_the_drafts,
            settings=("instructed",), keys=_DRAFTED, lines=shown.speculation, seconds=_stage_seconds,
            source="Wang et al., 2024",
        ),
        ProgramSpec(
            "efficient", "The same, with embeddings looked up by the nearest KRAQ question instead of computed.",
            _efficient, "EfficientSpeculativeRAG", EfficientOptions, prepared=(INSTRUCTED,), role="drafter",
            roles={"scorer": "verifier"}, budget=attrgetter("sizes.n"), calls_at_once=attrgetter("sizes.m"),
            calls=_twice_the_drafts, settings=("instructed",),
            keys=(*_DRAFTED, "proxy", "proxy_similarity", "proxy_used", "n_looked_up", "n_embedded"),
            lines=shown.speculation, seconds=_stage_seconds, source="KRAQ paper, appendix C",
        ),
        ProgramSpec(
            "graph-local", "Entities near the question, their links, reports and passages in a budget.", _graph_local,
            "GraphLocalSearch", GraphContextOptions, takes="nothing", prepared=(GRAPH,),
            keys=("reports", "entities", "relationships", "context_tokens"), lines=shown.local_search,
            source="GraphRAG, local (Edge et al., 2024)",
        ),
        ProgramSpec(
            "graph-global", "Reports of a level; points rated, then brought together.", _graph_global,
            "GraphGlobalSearch", GraphGlobalOptions, takes="nothing", prepared=(GRAPH,),
            keys=("points", "n_batches"), lines=shown.global_search, source="GraphRAG, global (Edge et al., 2024)",
        ),
        ProgramSpec(
            "qa-rag", "Question and passages become question-answer pairs, and the answer is judged.", _qa_rag,
            "QARAG", QARAGOptions, prepared=(QA_PAIRS,), needs_prepared=attrgetter("has_plug_ins"),
            keys=("sub_questions", "pairs", "n_looked_up", "n_made", "n_failed", "response", "valid"),
            lines=shown.plug_ins, source="QA-RAG paper, listings 6 to 9",
        ),
        ProgramSpec(
            "k2rag", "From a summarised corpus: a graph's account of the question, then passages for sub-questions.",
            _k2rag, "K2RAG", K2RAGOptions, takes="nothing", prepared=(SUMMARISED,), roles={"shorten": "summarizer"},
            settings=("k2rag",),
            keys=("account", "account_summary", "sub_questions", "sub_answers", "context", "n_failed"),
            lines=shown.sub_answers, source="K2RAG paper, Algorithm 2",
        ),
        ProgramSpec(
            "qa-search", "An answer that was prepared; where there is none, another program is asked.", _qa_search,
            "QASearch", QASearchOptions, takes="program", measured={"collect": False, "learn": "no"},
            keys=("source", "entry", "search"), lines=shown.catalogue_search,
            source="QA search paper, Algorithm 1",
        ),
        ProgramSpec(
            "naive-semantic", "Once, by meaning, from the whole corpus.", _naive("dense"), "TraditionalRAG",
            NaiveOptions, takes="nothing", source="K2RAG paper, baseline",
        ),
        ProgramSpec(
            "naive-keyword", "Once, by words, from the whole corpus.", _naive("bm25"), "TraditionalRAG",
            NaiveOptions, takes="nothing", source="K2RAG paper, baseline",
        ),
        ProgramSpec(
            "naive-hybrid", "Once, by both, from the whole corpus.", _naive("hybrid", weight=0.8), "TraditionalRAG",
            NaiveOptions, takes="nothing", source="K2RAG paper, baseline",
        ),
        ProgramSpec(
            "naive-graph", "Once, from the whole corpus's graph.", _naive_graph, "NaiveGraphRAG", NaiveGraphOptions,
            takes="nothing", prepared=(GRAPH,), keys=("account",), source="K2RAG paper, baseline",
        ),
    ],
)  # fmt: skip
