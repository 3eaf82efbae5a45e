"""Defines the request for a compile: the rows, the method with its budget, and what the target works with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.roles import LanguageModels, ModelsLike, as_models
from kraq_dspy.optimize.optimizers import Sizes
from kraq_dspy.optimize.rows import Row, Split, read_rows, split_rows
from kraq_dspy.optimize.targets import Target, make_target
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

Rows = str | Path | Sequence[Row]


@dataclass(frozen=True)
class DevSet:
    """Rows to learn from and to measure on: `train_share` of `rows` and the others, or `train` and all of `rows`.

    >>> DevSet("dev.jsonl", train_share=0.3).train_share
    0.3
    """

    rows: Rows
    train: Rows | None = None
    train_share: float = 0.5

    def split(self, target: Target, seed: int) -> Split:
        train = None if self.train is None else _read(self.train)
        return split_rows(_read(self.rows), target.rows, train=train, share=self.train_share, seed=seed)


@dataclass(frozen=True)
class Budget:
    """The most model `calls` of a compile. `announce` is told the estimate and the split before the first call."""

    calls: int | None = None
    announce: Callable[[int, Split], None] | None = None


@dataclass(frozen=True)
class Method:
    """How to optimize: one of DSPy's optimizers by name, its sizes, and the state to begin with.

    >>> Method("mipro", Sizes(demos=2, candidates=4), budget=Budget(calls=500)).sizes.candidates
    4
    """

    optimizer: str = "bootstrap"
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 0
    start: str | Path | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class Resources:
    """What a target works with. All may be left out, but programs need an `index`.

    `models` are by role, "default" stands in for the others. `scorer` measures the relevance of questions; `arguments`
    and the name of a `retriever` go to a program.
    """

    index: str | Path | Workspace | None = None
    settings: Settings | None = None
    models: ModelsLike | None = None
    embedder: EmbedderLike | None = None
    retriever: str | None = None
    arguments: Mapping[str, Any] | None = None
    scorer: BertScorer | None = None

    @contextmanager
    def opened(self) -> Iterator[Workspace | None]:
        """The index as a workspace; one that came open stays open."""
        if self.index is None or isinstance(self.index, Workspace):
            yield self.index
            return
        with Workspace.open(self.index, settings=self.settings, embedder=self.embedder, models=self.models) as space:
            yield space

    def target(self, name: str, space: Workspace | None) -> Target:
        """The step or program of that name."""
        settings = self.settings or (space.models.settings if space else Settings())
        return make_target(
            name,
            space,
            retriever=self.retriever,
            scorer=self.scorer,
            settings=settings,
            arguments=self.arguments,
        )

    def encoder(self, space: Workspace | None, *, needed: bool) -> Embedder | None:
        """The encoder given, else that of the index, else, where one is needed, that of the settings."""
        if self.embedder is not None:
            return as_embedder(self.embedder)
        embedder = space.embedder if space else None
        if embedder is None and needed:
            return load_embedder(resolve_encoder((self.settings or Settings()).encoder))
        return embedder

    def by_role(self, space: Workspace | None, embedder: Embedder | None) -> LanguageModels:
        """The models, by the name of their role."""
        if self.models is None and space is not None:
            return space.models
        return as_models(self.models, self.settings or Settings(), embedder=embedder)


def _read(rows: Rows) -> Sequence[Row]:
    return read_rows(Path(rows)) if isinstance(rows, str | Path) else rows
