"""Makes a LangChain retriever of any retriever of this library."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy.errors import needs
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever

with needs("langchain-core", "langchain", "A LangChain retriever"):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class LangChainRetriever(BaseRetriever):
    """A retriever for LangChain.

    Attributes:
        retrieve: a retriever of a `Workspace`, or anything that `as_retriever` takes.
        k: the number of documents, 1 or more.
        filters: conditions on the metadata of chunks.

    Raises:
        ValueError: when called with an empty question.
        IndexStateError: when called after the index was closed.

    A document of LangChain is a chunk of kraq, with the same id. The text of a document begins with the title.

    >>> from kraq_dspy import Corpus
    >>> rivers = Corpus.from_texts(["The Danube flows into the Black Sea."])
    >>> retriever = LangChainRetriever(retrieve=rivers.retriever, k=1)
    >>> [document.page_content for document in retriever.invoke("Where does the Danube end?")]
    ['The Danube flows into the Black Sea.']
    """

    retrieve: Any
    k: int = Field(default=10, ge=1)
    filters: Mapping[str, Any] | None = None

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return to_documents(await call(as_retriever(self.retrieve), query, self.k, filters=self.filters))

    _get_relevant_documents = blocking(_aget_relevant_documents)


def to_documents(hits: Sequence[Hit]) -> list[Document]:
    """Turn hits into LangChain's documents, in their order. Metadata is the document's own, and
    `chunk_id`, `document_id`, `title`, `start` and `end` (in characters of the document), `score`,
    `why` and `query`, which win over equal names."""
    return [
        Document(
            id=hit.chunk.id,
            page_content=hit.chunk.passage,
            metadata={
                **hit.chunk.metadata,
                "chunk_id": hit.chunk.id,
                "document_id": hit.chunk.document_id,
                "title": hit.chunk.title,
                "start": hit.chunk.start,
                "end": hit.chunk.end,
                "score": hit.score,
                "why": hit.why,
                "query": hit.query,
            },
        )
        for hit in hits
    ]
