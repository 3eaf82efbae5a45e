"""Is what most code needs of an index: opened, with programs and retrievers by name, and asked."""

from collections.abc import Collection
from typing import Self

from kraq_dspy.asset.store.index import Index
from kraq_dspy.indexing.view.views import open_view
from kraq_dspy.records import Document
from kraq_dspy.workspace.asking import Answering


class Workspace(Answering):
    """`Workspace.open("docs.kraq")` is what most code needs: programs and retrievers over that index.

    The index stays open until `close` or the end of a `with` block. Safe for threads.

    >>> with Workspace.open("ada.kraq") as space:
    ...     space.ask("Where did Ada live?").answer
    'London. Ada lived in London.'

    What it does stands in four files: `opening` (the index, its encoder and models, and what is read of it), `choosing`
    (programs and retrievers by name), `asking` and `suggesting`.
    """

    def without(self, document_ids: Collection[str]) -> Self:
        """Another workspace, over a view of the index: what it would be had these documents never been in it.

        >>> with Workspace.open("ada.kraq") as space, space.without(["ada"]) as rest:
        ...     [hit.chunk.document_id for hit in rest.retriever("bm25")("Where did Ada live in London?", k=5)]
        ['london']

        Passages, graph, communities, summaries, questions and all numbers are those of the other documents alone; no
        model is asked. Ids that the index does not have do not matter. The view is made at the first call, which takes
        about as long as all stages of a build but embedding and extraction, and kept beside the index until that
        changes: to hide many documents from one question each, hide them all together. Close both workspaces.
        """
        hidden = frozenset(document_ids)
        return self._of_view([document_id for document_id in self.index.ids(Document) if document_id not in hidden])

    def _of_view(self, document_ids: Collection[str]) -> Self:
        view: Index = open_view(self.index, document_ids, self.embedder)
        return type(self)(view, self.embedder, self.models)
