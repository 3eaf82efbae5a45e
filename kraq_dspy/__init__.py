"""Knowledge-graph representative questions for retrieval-augmented generation, as DSPy programs.

The names below are the public ones. They are imported when they are first used, so that `import kraq_dspy` is quick.
"""

import importlib
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

# Before dspy is imported: LiteLLM would otherwise fetch its price list over the network when it is first asked.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

if TYPE_CHECKING:
    from kraq_dspy.catalogue.search import QASearch
    from kraq_dspy.config import Settings, read_settings
    from kraq_dspy.errors import KraqError
    from kraq_dspy.indexing.build import build_index
    from kraq_dspy.indexing.change import add_documents, remove_documents, resume_index, update_index
    from kraq_dspy.indexing.export import export_index
    from kraq_dspy.indexing.import_graph import import_graphrag, import_triples
    from kraq_dspy.indexing.report import BuildReport
    from kraq_dspy.programs.combined_retrieve_rag import CombinedRetrieveRAG
    from kraq_dspy.programs.k2rag import K2RAG
    from kraq_dspy.programs.kraq import KRAQ
    from kraq_dspy.programs.qa_rag import QARAG
    from kraq_dspy.programs.retrievers.in_memory import Corpus
    from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG
    from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG
    from kraq_dspy.programs.traditional_rag import TraditionalRAG
    from kraq_dspy.records import Chunk, Community, Document, Entity, Hit, Question, Relationship, Summary
    from kraq_dspy.stores.index import Index
    from kraq_dspy.workspace import Workspace

__version__ = version("kraq-dspy")

_HOME = {
    "BuildReport": "indexing.report",
    "Chunk": "records",
    "CombinedRetrieveRAG": "programs.combined_retrieve_rag",
    "Community": "records",
    "Corpus": "programs.retrievers.in_memory",
    "Document": "records",
    "EfficientSpeculativeRAG": "programs.speculative.efficient_speculative_rag",
    "Entity": "records",
    "Hit": "records",
    "Index": "stores.index",
    "K2RAG": "programs.k2rag",
    "KRAQ": "programs.kraq",
    "KraqError": "errors",
    "QARAG": "programs.qa_rag",
    "QASearch": "catalogue.search",
    "Question": "records",
    "Relationship": "records",
    "Settings": "config",
    "SpeculativeRAG": "programs.speculative.speculative_rag",
    "Summary": "records",
    "TraditionalRAG": "programs.traditional_rag",
    "Workspace": "workspace",
    "add_documents": "indexing.change",
    "build_index": "indexing.build",
    "export_index": "indexing.export",
    "import_graphrag": "indexing.import_graph",
    "import_triples": "indexing.import_graph",
    "read_settings": "config",
    "remove_documents": "indexing.change",
    "resume_index": "indexing.change",
    "update_index": "indexing.change",
}

__all__ = [
    "K2RAG",
    "KRAQ",
    "QARAG",
    "BuildReport",
    "Chunk",
    "CombinedRetrieveRAG",
    "Community",
    "Corpus",
    "Document",
    "EfficientSpeculativeRAG",
    "Entity",
    "Hit",
    "Index",
    "KraqError",
    "QASearch",
    "Question",
    "Relationship",
    "Settings",
    "SpeculativeRAG",
    "Summary",
    "TraditionalRAG",
    "Workspace",
    "add_documents",
    "build_index",
    "export_index",
    "import_graphrag",
    "import_triples",
    "read_settings",
    "remove_documents",
    "resume_index",
    "update_index",
]


def __getattr__(name: str) -> Any:
    if name == "optimize":  # `kraq_dspy.optimize.compile_program` without importing it first
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
