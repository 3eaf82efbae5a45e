"""Lists every program and retriever by name: this library's own, and those that other packages registered."""

import logging
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from kraq_dspy.errors import ConfigError, did_you_mean
from kraq_dspy.programs.combined import COMBINED
from kraq_dspy.programs.graph.graph_global_search import GRAPH_GLOBAL
from kraq_dspy.programs.graph.graph_local_search import GRAPH_LOCAL
from kraq_dspy.programs.k2rag.program import K2RAG_SPEC, NAIVE_GRAPH
from kraq_dspy.programs.qa_rag import QA_RAG
from kraq_dspy.programs.qa_search.program import QA_SEARCH
from kraq_dspy.programs.speculative.efficient_speculative_rag import EFFICIENT
from kraq_dspy.programs.speculative.speculative_rag import SPECULATIVE
from kraq_dspy.programs.traditional import TRADITIONAL
from kraq_dspy.retrievers import (
    adaptive,
    combined,
    dmqr,
    metadata_filter,
    pagerank,
    rag_fusion,
    raptor,
    reports,
    rerank,
    rewritten,
    sentence_window,
    words_and_meaning,
)
from kraq_dspy.spec import ProgramSpec, RetrieverSpec

logger = logging.getLogger(__name__)

Spec = TypeVar("Spec", bound=ProgramSpec | RetrieverSpec)


class Registry(Generic[Spec]):
    """The specs by name: this library's own, then those that other packages registered as entry points of `group`."""

    def __init__(self, kind: type[Spec], what: str, group: str, own: Sequence[Spec]) -> None:
        self.kind = kind
        self.what = what
        self.group = group
        self.own = {spec.name: spec for spec in own}

    def __getitem__(self, name: str) -> Spec:
        """Raises ConfigError for a name that nobody declared, and for an entry point that cannot be loaded."""
        if name in self.own:
            return self.own[name]
        others = self._others()
        if name not in others:
            known = [*self.own, *others]
            raise ConfigError(
                f"There is no {self.what} {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}."
            )
        return self._loaded(others[name])

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[Spec]:
        """All that can be loaded; the log says which cannot."""
        yield from self.own.values()
        for entry in self._others().values():
            try:
                yield self._loaded(entry)
            except ConfigError as error:
                logger.warning("%s", error)

    def names(self) -> list[str]:
        return [*self.own, *self._others()]

    def _others(self) -> dict[str, EntryPoint]:
        others: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
            if entry.name in self.own or entry.value != others.setdefault(entry.name, entry).value:
                logger.warning("The %s %r of %r is left out: the name is taken.", self.what, entry.name, entry.value)
        return others

    def _loaded(self, entry: EntryPoint) -> Spec:
        what = f"The {self.what} {entry.name!r} of {entry.value!r}"
        try:
            spec = entry.load()
        except Exception as error:  # whatever another package's import raises
            raise ConfigError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(spec, self.kind) or spec.name != entry.name:
            raise ConfigError(f"{what} is {spec!r:.200}; expected a {self.kind.__name__} named {entry.name!r}.")
        return spec


PROGRAMS: Registry[ProgramSpec[Any, Any]] = Registry(
    ProgramSpec,
    "program",
    "kraq_dspy.programs",
    [
        TRADITIONAL, COMBINED, SPECULATIVE, EFFICIENT, GRAPH_LOCAL, GRAPH_GLOBAL, QA_RAG, K2RAG_SPEC, QA_SEARCH,
        NAIVE_GRAPH,
    ],
)  # fmt: skip

RETRIEVERS: Registry[RetrieverSpec[Any]] = Registry(
    RetrieverSpec,
    "retriever",
    "kraq_dspy.retrievers",
    [
        words_and_meaning.DENSE, words_and_meaning.BM25, words_and_meaning.HYBRID, words_and_meaning.FUSION,
        combined.COMBINED, pagerank.PAGERANK, adaptive.ADAPTIVE, sentence_window.SENTENCE_WINDOW,
        metadata_filter.METADATA_FILTER, rerank.RERANKED, rerank.CROSS_ENCODER, rewritten.QR_FUSION,
        rag_fusion.RAG_FUSION, dmqr.DMQR, raptor.RAPTOR, reports.GRAPH_LOCAL, reports.GRAPH_GLOBAL,
    ],
)  # fmt: skip
