"""Makes a LlamaIndex retriever of any retriever of this library."""

from typing import Any

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy.errors import needs
from kraq_dspy.ports import Filters, RetrieverLike
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever

with needs("llama-index-core", "llama-index", "A LlamaIndex retriever"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

SHOWN = "title"
"""What a model sees of a node's metadata, before its text; the rest is for programs."""


class LlamaIndexRetriever(BaseRetriever):
    """A retriever for LlamaIndex.

    Args:
        retrieve: a retriever of a `Workspace`, or anything that `as_retriever` takes.
        k: the number of nodes, 1 or more.
        filters: conditions on the metadata of chunks.
        **options: options of LlamaIndex's `BaseRetriever`.

    Raises:
        ValueError: for a `k` below 1, or when called with an empty question.
        IndexStateError: when called after the index was closed.

    A node of LlamaIndex is a chunk of kraq, with the same id and span. The source of a node is the document.

    >>> from kraq_dspy import Corpus
    >>> rivers = Corpus.from_texts(["The Danube flows into the Black Sea."])
    >>> retriever = LlamaIndexRetriever(rivers.retriever, k=1)
    >>> [node.text for node in retriever.retrieve("Where does the Danube end?")]
    ['The Danube flows into the Black Sea.']
    """

    def __init__(self, retrieve: RetrieverLike, k: int = 10, filters: Filters | None = None, **options: Any) -> None:
        if k < 1:
            raise ValueError(f"k is {k}; expected 1 or more passages.")
        super().__init__(**options)
        self.source = as_retriever(retrieve)
        self.k = k
        self.filters = filters

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = await call(self.source, query_bundle.query_str, self.k, filters=self.filters)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits]

    _retrieve = blocking(_aretrieve)


def _node(hit: Hit) -> TextNode:
    """Metadata is the document's own, and `title`, `document_id`, `why` and `query`, which win over equal names."""
    chunk = hit.chunk
    metadata = {
        **chunk.metadata,
        SHOWN: chunk.title,
        "document_id": chunk.document_id,
        "why": hit.why,
        "query": hit.query,
    }

    hidden = [name for name in metadata if name != SHOWN]

    return TextNode(
        id_=chunk.id,
        text=chunk.text,
        start_char_idx=chunk.start,
        end_char_idx=chunk.end,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk.document_id)},
    )
