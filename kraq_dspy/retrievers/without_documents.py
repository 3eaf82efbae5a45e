"""Retrieves as if some documents were not there: for questions of which a test set hides the answer."""

from collections.abc import Collection
from dataclasses import replace

from kraq_dspy.ports import Retriever
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving


class WithoutDocuments(Retrieving):
    """Finds what `retrieve` finds beside the passages of `hidden`, ids of chunks.

    >>> from kraq_dspy import Corpus
    >>> corpus = Corpus.from_texts(["The Rhine is a river.", "The Alps are mountains."])
    >>> rhine, alps = (chunk.id for chunk in corpus.chunks)
    >>> WithoutDocuments(corpus.retriever, [rhine])("Which rivers are there?", 2)[0].chunk.text
    'The Alps are mountains.'
    """

    def __init__(self, retrieve: Retriever, hidden: Collection[str]) -> None:
        self.retrieve = as_retriever(retrieve)
        self.hidden = frozenset(hidden)

    def find(self, request: RetrievalRequest) -> list[Hit]:
        return replace(request, exclude=self.hidden.union(request.exclude)).send_to(self.retrieve)
