"""Finds passages: one interface (`ports.Retriever`), a file a retriever, one contract test that all of them pass."""

from kraq_dspy.asset.graph.passage_graph import PassageGraph, passage_graph
from kraq_dspy.programs.retrievers.adapted import AdaptedRetriever, as_retriever
from kraq_dspy.programs.retrievers.adaptive import AdaptiveRetriever
from kraq_dspy.programs.retrievers.combined import (
    CombinedHits,
    CombinedRetriever,
    NearestQuestions,
    as_question_finder,
    share_budget,
)
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving
from kraq_dspy.programs.retrievers.in_memory import Corpus
from kraq_dspy.programs.retrievers.metadata_filter import KnownMetadata, MetadataFilterRetriever
from kraq_dspy.programs.retrievers.pagerank import PageRankRetriever
from kraq_dspy.programs.retrievers.raptor import RaptorRetriever, SummaryTree, TreeNode
from kraq_dspy.programs.retrievers.reports import EntityReportRetriever, ReportRetriever
from kraq_dspy.programs.retrievers.rerank import QuestionSimilarityReranker, RerankingRetriever, questions_by_chunk
from kraq_dspy.programs.retrievers.rewritten import RewrittenRetriever
from kraq_dspy.programs.retrievers.sentence_window import SentenceWindowRetriever
from kraq_dspy.programs.retrievers.words_and_meaning import (
    BM25Retriever,
    DenseRetriever,
    FusionRetriever,
    HybridRetriever,
)

__all__ = [
    "AdaptedRetriever",
    "AdaptiveRetriever",
    "BM25Retriever",
    "CombinedHits",
    "CombinedRetriever",
    "Corpus",
    "DenseRetriever",
    "EntityReportRetriever",
    "FusionRetriever",
    "HybridRetriever",
    "KnownMetadata",
    "MetadataFilterRetriever",
    "NearestQuestions",
    "PageRankRetriever",
    "PassageGraph",
    "QuestionSimilarityReranker",
    "RaptorRetriever",
    "ReportRetriever",
    "RerankingRetriever",
    "RetrievalRequest",
    "Retrieving",
    "RewrittenRetriever",
    "SentenceWindowRetriever",
    "SummaryTree",
    "TreeNode",
    "as_question_finder",
    "as_retriever",
    "passage_graph",
    "questions_by_chunk",
    "share_budget",
]
