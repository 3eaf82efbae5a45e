"""Holds the retrievers: one interface, `retrieve(question, k)`, that returns hits, best first.

from kraq_dspy.retrievers import BM25Retriever, DenseRetriever, FusionRetriever
"""

from kraq_dspy.programs.retrievers import *  # noqa: F403
from kraq_dspy.programs.retrievers import __all__ as __all__


def __dir__() -> list[str]:
    return sorted(__all__)
