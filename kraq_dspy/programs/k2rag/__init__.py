"""Answers from a summarised corpus, a graph's account of it and sub-questions (Markondapatnaikuni et al., 2025)."""

from kraq_dspy.programs.graph.graph_local_search import KnowledgeGraph
from kraq_dspy.programs.k2rag.program import K2RAG, NaiveGraphRAG
from kraq_dspy.programs.k2rag.shorten import Shorten

__all__ = ["K2RAG", "KnowledgeGraph", "NaiveGraphRAG", "Shorten"]
