"""An index opened for work: with its encoder and its models, retrievers and programs by name."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.catalogue.search import QASearch
from kraq_dspy.catalogue.served import ServedAnswers
from kraq_dspy.catalogue.store import CATALOGUE, Catalogue
from kraq_dspy.config import Settings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.errors import ConfigError, EncoderMismatchError
from kraq_dspy.lms import spans
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Embedder, Retriever
from kraq_dspy.prepare.graph import IndexGraph, entity_vectors, report_vectors
from kraq_dspy.prepare.k2rag import SummarisedCorpus, open_summarised, shortener
from kraq_dspy.prepare.qa_pairs import StoredPairs
from kraq_dspy.prepare.raptor import open_tree
from kraq_dspy.prepare.sentences import sentence_vectors
from kraq_dspy.programs.combined_retrieve_rag import CombinedRetrieveRAG
from kraq_dspy.programs.graph_search.graph_global_search import GraphGlobalSearch
from kraq_dspy.programs.graph_search.graph_local_search import GraphLocalSearch
from kraq_dspy.programs.k2rag import K2RAG, KnowledgeGraph, NaiveGraphRAG
from kraq_dspy.programs.qa_rag.program import QARAG
from kraq_dspy.programs.retrievers import (
    AdaptiveRetriever,
    BM25Retriever,
    CombinedRetriever,
    CommunityBridgeRetriever,
    DenseRetriever,
    EntityReportRetriever,
    FusionRetriever,
    HybridRetriever,
    KnownMetadata,
    MetadataFilterRetriever,
    MMRRetriever,
    NearestQuestions,
    PageRankRetriever,
    PassageGraph,
    QuestionCommunities,
    QuestionSimilarityReranker,
    RaptorRetriever,
    ReportRetriever,
    RerankingRetriever,
    RewrittenRetriever,
    SentenceWindowRetriever,
    SummaryTree,
    passage_graph,
)
from kraq_dspy.programs.retrievers.rewriting import Clarify, Diversify, Vary
from kraq_dspy.programs.state import load_state
from kraq_dspy.programs.traditional_rag import TraditionalRAG
from kraq_dspy.records import Chunk, Community, Entity, Question, Relationship
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.text_vectors import TextVectors
from kraq_dspy.workspace.speculative import make_efficient, make_speculative


class Workspace:
    """`Workspace.open("docs.kraq")` is what most code needs: programs and retrievers over that index.

    The index stays open until `close` or the end of a `with` block. Safe for threads.
    """

    def __init__(self, index: Index, embedder: Embedder, models: LanguageModels) -> None:
        self.index = index
        self.embedder = embedder
        self.models = models

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        models: LanguageModels | None = None,
        write: bool = False,
    ) -> "Workspace":
        """Without `settings`, the index's own: the encoder and the models that built it.

        Raises IndexStateError when there is no index, EncoderMismatchError when another encoder made its vectors.
        """
        index = Index.open(Path(path), write=write)
        settings = settings or index.manifest.settings
        embedder = embedder or load_embedder(settings.encoder)
        try:
            index.require_encoder(embedder)
        except EncoderMismatchError:
            index.close()
            raise
        return cls(index, embedder, models or LanguageModels(settings, embedder=embedder))

    def close(self) -> None:
        if "summarised" in self.__dict__:  # was asked for
            self.summarised.close()
        if "answers" in self.__dict__:
            self.answers.catalogue.close()
        self.index.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def retriever(self, name: str = "dense") -> Retriever:
        """One of RETRIEVERS, or "cross-encoder:MODEL", a hub name or a folder, which reranks what "hybrid" finds.

        Raises ConfigError for another name, ModelError for a cross-encoder that is not there.
        """
        if name.startswith(CROSS_ENCODER):
            from kraq_dspy.embedders.cross_encoder import CrossEncoderReranker  # brings torch

            return RerankingRetriever(_hybrid(self), CrossEncoderReranker(name.removeprefix(CROSS_ENCODER)))
        retriever: Retriever = _named(RETRIEVERS, name, "retriever")(self)
        return retriever

    @cached_property
    def communities(self) -> QuestionCommunities:
        """Which communities a chunk belongs to, and their questions. Read once."""
        return QuestionCommunities(
            {community.id: community.chunk_ids for community in self.index.all(Community)}, self.index.all(Question)
        )

    @cached_property
    def passage_graph(self) -> PassageGraph:
        """Chunks and the entities that they mention, for PageRank. Built once; 0.6 s at 15,000 chunks."""
        return passage_graph(
            self.index.ids(Chunk),
            ((chunk_id, entity.id) for entity in self.index.all(Entity) for chunk_id in entity.chunk_ids),
            ((link.source_id, link.target_id, link.weight) for link in self.index.all(Relationship)),
        )

    @cached_property
    def graph(self) -> IndexGraph:
        """The graph as GraphRAG's searches need it."""
        return IndexGraph(self.index)

    @cached_property
    def entity_vectors(self) -> TextVectors:
        """Embeddings of the entities; made now where `kraq precompute DIR --graph` was not run."""
        return entity_vectors(self.index, self.embedder)

    @cached_property
    def report_vectors(self) -> TextVectors:
        """Embeddings of the reports; made now where `kraq precompute DIR --graph` was not run."""
        return report_vectors(self.index, self.embedder)

    @cached_property
    def sentence_vectors(self) -> TextVectors:
        """Embeddings of the passages' sentences; made at the first use, about five for each passage, and kept."""
        return sentence_vectors(self.index, self.embedder)

    @cached_property
    def known_metadata(self) -> KnownMetadata:
        """What a question can be filtered by. Read once."""
        return KnownMetadata(self.index.all(Chunk), self.index.all(Entity))

    @cached_property
    def summary_tree(self) -> tuple[SummaryTree, TextVectors]:
        """What `kraq precompute DIR --raptor` stored. Raises IndexStateError where it was not run."""
        return open_tree(self.index, self.embedder)

    @cached_property
    def summarised(self) -> SummarisedCorpus:
        """What `kraq precompute DIR --k2rag` stored. Raises IndexStateError where it was not run."""
        return open_summarised(self.index, self.embedder)

    @cached_property
    def answers(self) -> ServedAnswers:
        """The index's catalogue of prepared answers, for QA search; an empty one where there was none."""
        catalogue = Catalogue(self.index.path / CATALOGUE)
        return ServedAnswers(catalogue, self.index.vectors_named("catalogue"), self.embedder)

    def questions(self, source: str = "kraq") -> NearestQuestions:
        """Finds the index's questions nearest to a text; `source` "random" means those of the papers' baseline."""
        return NearestQuestions(self.index, self.index.question_vectors, self.embedder, filters={"source": source})

    def program(
        self, name: str = "combined", retriever: str = "dense", *, state: str | Path | None = None, **arguments: Any
    ) -> dspy.Module:
        """One of PROGRAMS over one of RETRIEVERS. Steps that come without a model of their own, as those of speculative
        programs and of some retrievers do, get that of the role "answerer".

        `arguments` go to the program: `k`, `n`, `alpha`; see `speculative.py` for those of the speculative ones.
        "qa-search" takes `over`, the name of the program behind it, and hands on what is not its own. `state` is a
        file of `kraq optimize`, for the program or one of its steps. Raises ConfigError for an unknown name or
        argument, StateError for a state that does not fit.
        """
        make = _named(PROGRAMS, name, "program")
        for used in (name, arguments.get("over")):
            if used in WITHOUT_RETRIEVER and retriever != "dense":
                raise ConfigError(f"The program {used!r} finds its own evidence; it takes no retriever.")
        try:
            program: dspy.Module = make(self, self.retriever(retriever), **arguments)
        except TypeError as error:
            raise ConfigError(f"The program {name!r} cannot be made with {sorted(arguments)}: {error}") from error
        for _, predictor in program.named_predictors():
            if predictor.lm is None:
                predictor.lm = self.models["answerer"]
        if state is not None:
            load_state(program, Path(state), embedder=self.embedder)
        return program

    def ask(self, program: dspy.Module, question: str) -> dspy.Prediction:
        """Run the program with this library's adapter."""
        with spans.within("ask", kraq__program=type(program).__name__), dspy.context(adapter=KraqAdapter()):
            return program(question=question)


def _hybrid(space: Workspace, weight: float = 0.5, okapi: float = 0.0) -> Retriever:
    return HybridRetriever(space.index, space.index.chunk_vectors, space.embedder, weight=weight, okapi=okapi)


def _raptor(space: Workspace, mode: str) -> Retriever:
    tree, summaries = space.summary_tree
    return RaptorRetriever(space.index, space.index.chunk_vectors, space.embedder, tree, summaries, mode=mode)


def _k2rag(space: Workspace, *, k: int = 10, weight: float = 0.8) -> dspy.Module:
    corpus = space.summarised
    knowledge = None
    if corpus.has_graph:
        knowledge = KnowledgeGraph(entity_vectors(corpus.index, space.embedder), IndexGraph(corpus.index))
    shorten = shortener(space.models.settings.k2rag, share=K2RAG.SHARE)
    if shorten.summariser is None:
        shorten.set_lm(space.models["summarizer"])
    retrieve = HybridRetriever(corpus, corpus.vectors, space.embedder, weight=weight)
    return K2RAG(knowledge, retrieve, shorten, k=k)


def _qa_search(space: Workspace, retrieve: Retriever, *, over: str = "combined", **arguments: Any) -> dspy.Module:
    if over == "qa-search":
        raise ConfigError("QA search stands in front of another program, not of itself.")
    own = {name: arguments.pop(name) for name in ("block", "scan", "check", "collect") if name in arguments}
    return QASearch(_named(PROGRAMS, over, "program")(space, retrieve, **arguments), space.answers, **own)


def _rewritten(space: Workspace, rewrite: dspy.Module) -> Retriever:
    rewrite.set_lm(space.models["rewriter"])
    return RewrittenRetriever(space.retriever("dense"), rewrite)


CROSS_ENCODER = "cross-encoder:"

RETRIEVERS: dict[str, Callable[[Workspace], Retriever]] = {
    "dense": lambda space: DenseRetriever(space.index, space.index.chunk_vectors, space.embedder),
    "bm25": lambda space: BM25Retriever(space.index, space.index.chunk_vectors),
    "hybrid": _hybrid,
    "fusion": lambda space: FusionRetriever([space.retriever("dense"), space.retriever("bm25")]),
    "mmr": lambda space: MMRRetriever(space.retriever("dense"), space.index.chunk_vectors, space.embedder),
    "combined": lambda space: CombinedRetriever(space.retriever("dense"), space.questions()),
    "bridge": lambda space: CommunityBridgeRetriever(
        space.retriever("dense"),
        space.communities,
        space.index.question_vectors,
        space.index.chunk_vectors,
        space.index,
        space.embedder,
    ),
    "pagerank": lambda space: PageRankRetriever(_hybrid(space), space.passage_graph, space.index),
    "adaptive": lambda space: AdaptiveRetriever(
        _hybrid(space, weight=0.4, okapi=0.08), space.passage_graph, space.index
    ),
    "sentence-window": lambda space: SentenceWindowRetriever(space.index, space.sentence_vectors, space.embedder),
    "metadata-filter": lambda space: MetadataFilterRetriever(_hybrid(space), space.known_metadata),
    "reranked": lambda space: RerankingRetriever(
        _hybrid(space),
        QuestionSimilarityReranker(space.communities, space.index.question_vectors, space.embedder),
    ),
    "qr-fusion": lambda space: _rewritten(space, Clarify()),
    "rag-fusion": lambda space: _rewritten(space, Vary()),
    "dmqr": lambda space: _rewritten(space, Diversify()),
    "raptor": lambda space: _raptor(space, "collapsed"),
    "raptor-traversal": lambda space: _raptor(space, "traversal"),
    "graph-local": lambda space: EntityReportRetriever(space.entity_vectors, space.graph),
    "graph-global": lambda space: ReportRetriever(space.report_vectors, space.graph),
}

PROGRAMS: dict[str, Callable[..., dspy.Module]] = {
    "traditional": lambda space, retrieve, **arguments: TraditionalRAG(retrieve, **arguments),
    "combined": lambda space, retrieve, **arguments: CombinedRetrieveRAG(retrieve, space.questions(), **arguments),
    "speculative": lambda space, retrieve, **arguments: make_speculative(retrieve, space.models, **arguments),
    "efficient": lambda space, retrieve, **arguments: make_efficient(
        space.index, retrieve, space.questions(), space.models, **arguments
    ),
    "graph-local": lambda space, retrieve, **arguments: GraphLocalSearch(
        space.entity_vectors, space.graph, **arguments
    ),
    "graph-global": lambda space, retrieve, level=0, **arguments: GraphGlobalSearch(
        ReportRetriever(space.report_vectors, space.graph, level=level), **arguments
    ),
    "qa-rag": lambda space, retrieve, **arguments: QARAG(retrieve, StoredPairs(space.index.results), **arguments),
    "k2rag": lambda space, retrieve, **arguments: _k2rag(space, **arguments),
    "qa-search": _qa_search,
    "naive-semantic": lambda space, retrieve, k=10: TraditionalRAG(space.retriever("dense"), k=k),
    "naive-keyword": lambda space, retrieve, k=10: TraditionalRAG(space.retriever("bm25"), k=k),
    "naive-hybrid": lambda space, retrieve, k=10: TraditionalRAG(_hybrid(space, 0.8), k=k),
    "naive-graph": lambda space, retrieve, **arguments: NaiveGraphRAG(
        KnowledgeGraph(space.entity_vectors, space.graph, **arguments)
    ),
}

WITHOUT_RETRIEVER = ("graph-local", "graph-global")


def _named(known: dict[str, Any], name: str, what: str) -> Any:
    if name not in known:
        raise ConfigError(f"There is no {what} {name!r}; there are: {', '.join(known)}.")
    return known[name]
