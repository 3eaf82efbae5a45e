"""Retrievers: one interface (`ports.Retriever`), one file each, and one contract test that all of them pass."""

from kraq_dspy.programs.retrievers.bm25 import BM25Retriever
from kraq_dspy.programs.retrievers.combined import CombinedHits, CombinedRetriever, share_budget
from kraq_dspy.programs.retrievers.community_bridge import CommunityBridgeRetriever, QuestionCommunities
from kraq_dspy.programs.retrievers.dense import DenseRetriever
from kraq_dspy.programs.retrievers.hybrid import FusionRetriever, HybridRetriever
from kraq_dspy.programs.retrievers.mmr import MMRRetriever
from kraq_dspy.programs.retrievers.pagerank import PageRankRetriever, PassageGraph, passage_graph
from kraq_dspy.programs.retrievers.questions import NearestQuestions
from kraq_dspy.programs.retrievers.raptor import RaptorRetriever, SummaryTree, TreeNode
from kraq_dspy.programs.retrievers.reports import EntityReportRetriever, ReportRetriever
from kraq_dspy.programs.retrievers.rewritten import RewrittenRetriever

__all__ = [
    "BM25Retriever",
    "CombinedHits",
    "CombinedRetriever",
    "CommunityBridgeRetriever",
    "DenseRetriever",
    "EntityReportRetriever",
    "FusionRetriever",
    "HybridRetriever",
    "MMRRetriever",
    "NearestQuestions",
    "PageRankRetriever",
    "PassageGraph",
    "QuestionCommunities",
    "RaptorRetriever",
    "ReportRetriever",
    "RewrittenRetriever",
    "SummaryTree",
    "TreeNode",
    "passage_graph",
    "share_budget",
]
