"""Defines `Workspace`, an open index that answers questions, with programs and retrievers by
name."""

from collections.abc import Callable, Collection, Iterator
from typing import Self

import dspy

from kraq_dspy.asset.scope import Scope
from kraq_dspy.errors import ScopeError
from kraq_dspy.ports import Progress
from kraq_dspy.records import Document
from kraq_dspy.workspace.asking import Answering
from kraq_dspy.workspace.opening import PartOfIndex

TRAINSET_QUESTIONS = 50
"""Questions to learn from."""


class Workspace(Answering):
    """An open index that answers questions. `Workspace.open("docs.kraq")` makes one. Safe for threads.

    Args:
        index: the open index.
        embedder: the encoder of the index.
        models: the models by role.
        scope: which documents may be read; None for all.
        part: the whole index and the hidden documents, if `index` is a view.

    The index stays open until `close` or the end of a `with` block.

    >>> with Workspace.open("ada.kraq") as space:
    ...     space.ask("Where did Ada live?").answer
    'London. Ada lived in London.'
    """

    def scoped(self, scope: Scope) -> Self:
        """Make another workspace that reads only what `scope` allows. Hand it out in place of this
        one.

            with Workspace.open("docs.kraq") as space, space.scoped(Scope(["staff"])) as staff:
                staff.ask("When does the canteen open?")

        It is a view like that of `without`: programs, retrievers, questions, graph and numbers know
        of nothing else. Labels that no document has show nothing. `Scope.everything()` is for the
        owner, and shows the whole.

        Raises ScopeError if no document says who may read it, or if this workspace is scoped already.
        """
        if not isinstance(scope, Scope):
            raise ScopeError(f"A scope is {scope!r:.80}; expected a Scope, such as Scope(['staff']).")
        if self.scope is not None:
            raise ScopeError("This workspace has a scope already. Make the other one from the workspace of the whole.")
        self._index.require_labels()
        if scope.is_everything:
            owner = type(self)(self._index, self.embedder, self.models, scope=scope)
            owner._owns_index = False
            return owner

        allowed = [document_id for document_id, labels in self._index.labels().items() if scope.allows(labels)]
        return self._part(allowed, scope)

    def handed_over(self, scope: Scope) -> Self:
        """Do as `scoped` does, and keep no hold on the whole: the former state of an index that
        changes can go while the other workspace is used. This one is closed then.

        Raises ScopeError as `scoped` does.
        """
        scoped = self.scoped(scope)
        if scoped._index is self._index:
            scoped._owns_index, self._owns_index = True, False
        else:
            self.close()
        return scoped

    def prepare(self, scope: Scope, progress: Progress | None = None) -> None:
        """Make the view of a scope now. The models of this workspace, not templates, rewrite what
        was also made from documents outside the scope.

        It replaces an existing view, and holds until the index changes. An interrupted run starts
        again. Raises ScopeError as `scoped` does, and what models raise.
        """
        self._index.require_labels()
        allowed = [document_id for document_id, labels in self._index.labels().items() if scope.allows(labels)]
        from kraq_dspy.indexing.view.views import save_view  # with all of a build, for which questions need not wait

        save_view(self._index, allowed, self.embedder, models=self.models, progress=progress)

    def owned(self) -> Self:
        """Make a workspace for changing the index: if you may write its files, you own it."""
        return self.scoped(Scope.everything()) if self.has_labels else self

    def without(self, document_ids: Collection[str]) -> Self:
        """Make another workspace, over a view of the index as if these documents had never been in
        it.

        >>> with Workspace.open("ada.kraq") as space, space.without(["ada"]) as rest:
        ...     [hit.chunk.document_id for hit in rest.retriever("bm25")("Where did Ada live in London?", k=5)]
        ['london']

        Passages, graph, communities, summaries, questions and all numbers come from the other
        documents alone; this calls no model, and ignores unknown ids. The first call makes the
        view, which takes about as long as a build without embedding and extraction. kraq keeps the
        view next to the index until that changes. To hide many documents from one question each,
        hide them all together. Close both workspaces.
        """
        hidden = frozenset(document_ids)
        shown = [document_id for document_id in self.index.ids(Document) if document_id not in hidden]
        return self._part(shown, self.scope, hidden)

    def trainset(
        self,
        n: int = TRAINSET_QUESTIONS,
        *,
        unanswerable: float = 0.0,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> list[dspy.Example]:
        """Make questions about the index, with their answers, for DSPy's optimizers and
        `dspy.Evaluate`. `question` is the only input.

        >>> with Workspace.open("docs.kraq") as space:  # doctest: +SKIP
        ...     program = space.program("traditional")
        ...     dspy.BootstrapFewShot(metric=kraq.eval.token_f1).compile(program, trainset=space.trainset(50))

        The model of the role "generator" writes them, or the embedded reader if you name none.
        `unanswerable` is the share of questions that the documents do not answer. See
        `kraq_dspy.eval.make_trainset`, which this calls.
        """
        import kraq_dspy  # test sets stand on workspaces: a workspace reaches them by their public name alone

        return kraq_dspy.eval.make_trainset(self, n, unanswerable=unanswerable, seed=seed, progress=progress)

    def newest(self) -> Self:
        """Open the last complete state of the same index, with this workspace's encoder, models
        and scope, and without the documents that it hides."""
        newest = type(self).open(self.path, embedder=self.embedder, lm=self.models)
        newest._index.own_store = self._index.own_store

        for narrowed in self._narrowings():
            wider = newest
            try:
                newest = narrowed(wider)
            except BaseException:
                wider.close()
                raise
            if newest._index is wider._index:
                newest._owns_index = True
            else:
                wider.close()
        return newest

    def _narrowings(self) -> Iterator[Callable[[Self], Self]]:
        """Yield what leads from the whole index to what this workspace shows."""
        scope, part = self.scope, self.part
        if scope is not None:
            yield lambda space: space.scoped(scope)
        if part is not None and part.hidden:
            yield lambda space: space.without(part.hidden)

    def _part(self, document_ids: Collection[str], scope: Scope | None, hidden: frozenset[str] = frozenset()) -> Self:
        readable = frozenset(document_ids)
        before = self.part.hidden if self.part is not None else frozenset()
        from kraq_dspy.indexing.view.views import open_view  # as above

        view = open_view(self._index, readable, self.embedder)
        part = PartOfIndex(self.path, readable, before | hidden)
        view.own_store = self._index.own_store
        return type(self)(view, self.embedder, self.models, scope=scope, part=part)
