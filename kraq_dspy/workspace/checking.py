"""Looks again at what was found for somebody who may read a part of an index, before a prompt is written of it."""

from collections.abc import Sequence
from functools import cached_property

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import IndexStateError, ScopeError
from kraq_dspy.records import Community, Hit
from kraq_dspy.workspace.opening import OpenedIndex


class ReadableHits(SharedByCopies):
    """Lets passages of the documents through that a view was made of, and what the view itself made of these.

    Which documents these are comes from the labels of the whole index, not from the view, so that one fault alone, in
    either, shows nobody anything. The message names no document: that there is one must not be told either.
    """

    def __init__(self, space: OpenedIndex, document_ids: frozenset[str]) -> None:
        self._space = space
        self._document_ids = document_ids

    def __call__(self, hits: Sequence[Hit]) -> None:
        """Raises ScopeError."""
        for hit in hits:
            document_id = hit.chunk.document_id
            if document_id not in self._document_ids and not self._is_derived(document_id, hit.chunk.id):
                raise ScopeError(
                    "A passage was found that is none of the documents which may be read here, so nothing is answered. "
                    "A retriever of your own must ask the workspace that it is used with, not another one."
                )

    def _is_derived(self, document_id: str, chunk_id: str) -> bool:
        """Whether it is a report of a community of the view, or a summary of the view's tree."""
        return document_id in self._communities if document_id else chunk_id in self._summaries

    @cached_property
    def _communities(self) -> frozenset[str]:
        return frozenset(self._space.index.ids(Community))

    @cached_property
    def _summaries(self) -> frozenset[str]:
        try:
            tree, _ = self._space.summary_tree
        except IndexStateError:  # there is no tree
            return frozenset()
        return frozenset(tree.nodes)
