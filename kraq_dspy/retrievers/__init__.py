"""Holds the retrievers: one interface, `retrieve(question, k)`, that returns hits, best first.

from kraq_dspy.retrievers import BM25Retriever, DenseRetriever, FusionRetriever
"""

from kraq_dspy.asset.graph.passage_graph import PassageGraph as PassageGraph, passage_graph as passage_graph
from kraq_dspy.retrievers.adapted import AdaptedRetriever as AdaptedRetriever, as_retriever as as_retriever
from kraq_dspy.retrievers.adaptive import AdaptiveRetriever as AdaptiveRetriever
from kraq_dspy.retrievers.combined import (
    CombinedHits as CombinedHits,
    CombinedRetriever as CombinedRetriever,
    NearestQuestions as NearestQuestions,
    as_question_finder as as_question_finder,
    share_budget as share_budget,
)
from kraq_dspy.retrievers.dmqr import DMQRRetriever as DMQRRetriever
from kraq_dspy.retrievers.hits import RetrievalRequest as RetrievalRequest, Retrieving as Retrieving
from kraq_dspy.retrievers.in_memory import Corpus as Corpus
from kraq_dspy.retrievers.metadata_filter import (
    KnownMetadata as KnownMetadata,
    MetadataFilterRetriever as MetadataFilterRetriever,
)
from kraq_dspy.retrievers.pagerank import PageRankRetriever as PageRankRetriever
from kraq_dspy.retrievers.rag_fusion import RAGFusionRetriever as RAGFusionRetriever
from kraq_dspy.retrievers.raptor import (
    RaptorRetriever as RaptorRetriever,
    SummaryTree as SummaryTree,
    TreeNode as TreeNode,
)
from kraq_dspy.retrievers.reports import (
    EntityReportRetriever as EntityReportRetriever,
    ReportRetriever as ReportRetriever,
)
from kraq_dspy.retrievers.rerank import (
    QuestionSimilarityReranker as QuestionSimilarityReranker,
    RerankingRetriever as RerankingRetriever,
    questions_by_chunk as questions_by_chunk,
)
from kraq_dspy.retrievers.rewritten import RewrittenRetriever as RewrittenRetriever
from kraq_dspy.retrievers.sentence_window import SentenceWindowRetriever as SentenceWindowRetriever
from kraq_dspy.retrievers.words_and_meaning import (
    BM25Retriever as BM25Retriever,
    DenseRetriever as DenseRetriever,
    FusionRetriever as FusionRetriever,
    HybridRetriever as HybridRetriever,
)

__all__ = sorted(name for name, value in globals().items() if callable(value))


def __dir__() -> list[str]:
    return __all__
