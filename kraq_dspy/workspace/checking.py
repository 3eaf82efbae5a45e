"""Looks again at what was found for somebody who may read a part of an index, before a prompt is written of it."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import IndexStateError, ScopeError
from kraq_dspy.records import Chunk, Community, Hit, Summary, content_id
from kraq_dspy.retrievers.raptor import SummaryTree
from kraq_dspy.retrievers.reports import report_text
from kraq_dspy.workspace.opening import OpenedIndex


class ReadableHits(SharedByCopies):
    """Lets passages of the documents through that a view was made of, and what the view itself made of these alone: its
    reports of communities and the summaries of its tree, word for word.

    Which documents these are comes from the labels of the whole index, not from the view, so that one fault alone, in
    either, shows nobody anything. The message names no document: that there is one must not be told either.
    """

    def __init__(self, space: OpenedIndex, document_ids: frozenset[str]) -> None:
        self._space = space
        self._document_ids = document_ids
        self._derived: set[str] = set()  # what was looked at before and is the view's own, by its id and text

    def __call__(self, hits: Sequence[Hit]) -> None:
        """Raises ScopeError."""
        for hit in hits:
            if hit.chunk.document_id not in self._document_ids and not self._is_derived(hit.chunk):
                raise ScopeError(
                    "A passage was found that is none of the documents which may be read here, so nothing is answered. "
                    "A retriever of your own must ask the workspace that it is used with, not another one."
                )

    def _is_derived(self, chunk: Chunk) -> bool:
        """Whether the passage is what the view made of documents which may be read."""
        key = content_id(chunk.document_id, chunk.id, chunk.text)
        if key in self._derived:
            return True

        is_own = self._is_report(chunk) if chunk.document_id else self._is_summary(chunk)
        if is_own:
            self._derived.add(key)
        return is_own

    def _is_report(self, chunk: Chunk) -> bool:
        """Whether it is the report of a community of the view."""
        index, community_id = self._space.index, chunk.document_id
        if not index.known(Summary, [community_id]):
            return False
        [community], [summary] = index.get(Community, [community_id]), index.get(Summary, [community_id])
        return chunk.text == report_text(summary) and self._may_be_read(community.chunk_ids)

    def _is_summary(self, chunk: Chunk) -> bool:
        """Whether it is a summary of the view's tree."""
        node = self._tree.nodes.get(chunk.id) if self._tree is not None else None
        if self._tree is None or node is None:
            return False
        return chunk.text == node.text and self._may_be_read(self._tree.leaves[node.id])

    def _may_be_read(self, chunk_ids: Iterable[str]) -> bool:
        """Whether all these passages of the view are of documents which may be read."""
        return self._document_ids.issuperset(self._space.index.documents_of(list(chunk_ids)).values())

    @cached_property
    def _tree(self) -> SummaryTree | None:
        try:
            tree, _ = self._space.summary_tree
        except IndexStateError:  # there is none
            return None
        return tree
