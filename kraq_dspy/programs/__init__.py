"""Holds the question-answering programs, their steps, and the pipeline that makes an index: each a `dspy.Module`.

    from kraq_dspy.programs import CombinedRetrieveRAG

    rag = CombinedRetrieveRAG(retrieve, ["Who wrote notes on the Analytical Engine?"], k=6)
    rag(question="Who was Ada Lovelace?").answer

Programs: `TraditionalRAG`, `CombinedRetrieveRAG`, `SpeculativeRAG`, `EfficientSpeculativeRAG`, `GraphLocalSearch`,
`GraphGlobalSearch`, `QARAG`, `K2RAG`, `NaiveGraphRAG`, `QASearch`. The pipeline is `KRAQ`; its steps, and those of the
programs, stand beside them.
"""

from kraq_dspy.ports import GraphSource as GraphSource, NearestTexts as NearestTexts
from kraq_dspy.programs.combined import CombinedRetrieveRAG as CombinedRetrieveRAG
from kraq_dspy.programs.conversation import StandaloneQuestion as StandaloneQuestion
from kraq_dspy.programs.graph.graph_global_search import GraphGlobalSearch as GraphGlobalSearch
from kraq_dspy.programs.graph.graph_local_search import (
    GraphLocalSearch as GraphLocalSearch,
    KnowledgeGraph as KnowledgeGraph,
    LocalContext as LocalContext,
)
from kraq_dspy.programs.k2rag.program import K2RAG as K2RAG, NaiveGraphRAG as NaiveGraphRAG
from kraq_dspy.programs.k2rag.shorten import Shorten as Shorten
from kraq_dspy.programs.kraq.describe import (
    AskQuestion as AskQuestion,
    AskRandomQuestion as AskRandomQuestion,
    ConfirmSame as ConfirmSame,
    DescribeCommunity as DescribeCommunity,
    DescribeEntity as DescribeEntity,
)
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph as ExtractGraph, ExtractNames as ExtractNames
from kraq_dspy.programs.kraq.pipeline import KRAQ as KRAQ
from kraq_dspy.programs.qa_rag import QARAG as QARAG, QAPairSource as QAPairSource, WritePairs as WritePairs
from kraq_dspy.programs.qa_search.critics import (
    RateSyntheticPair as RateSyntheticPair,
    RereadSyntheticPair as RereadSyntheticPair,
    WriteSyntheticPair as WriteSyntheticPair,
)
from kraq_dspy.programs.qa_search.program import PreparedAnswers as PreparedAnswers, QASearch as QASearch
from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG as EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.scoring import KraqScore as KraqScore, Scorer as Scorer, VoteScore as VoteScore
from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG as SpeculativeRAG
from kraq_dspy.programs.traditional import TraditionalRAG as TraditionalRAG
from kraq_dspy.retrievers.raptor import SummarizeCluster as SummarizeCluster

__all__ = sorted(name for name, value in globals().items() if isinstance(value, type))


def __dir__() -> list[str]:
    return __all__
