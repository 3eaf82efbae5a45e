"""Holds what people run over an index, and an index in the shape of other frameworks: DSPy, LangChain, LlamaIndex.

from kraq_dspy.apps import index_tools

with kraq.Workspace.open("docs.kraq") as space:
    agent = dspy.ReAct("question -> answer", tools=index_tools(space))
"""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.apps.dspy_tools import PassageRetriever as PassageRetriever, index_tools as index_tools
    from kraq_dspy.apps.langchain import LangChainRetriever as LangChainRetriever
    from kraq_dspy.apps.llama_index import LlamaIndexRetriever as LlamaIndexRetriever

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy.apps.dspy_tools": ("PassageRetriever", "index_tools"),
        "kraq_dspy.apps.langchain": ("LangChainRetriever",),
        "kraq_dspy.apps.llama_index": ("LlamaIndexRetriever",),
    },
)
