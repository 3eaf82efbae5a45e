"""Asks candidates questions in rounds: few at first, then the better half more, and what remains all."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy.errors import BudgetExceededError, ConfigError, IndexStateError, MissingExtraError, ModelError, counted
from kraq_dspy.eval.asked import Asking
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.halves import has_halves, mean_of_halves, scores_by_half
from kraq_dspy.eval.latency import TOTAL
from kraq_dspy.eval.rows import ResultRow, RowWriter
from kraq_dspy.eval.scoring import RowScorer
from kraq_dspy.eval.selection.candidates import Candidate, SelectionPlan, better_half, chunks_of, rungs
from kraq_dspy.eval.system import AskedSystem
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.index.vectors_only import build_vectors
from kraq_dspy.models.lms.meter import Price
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, Vectors
from kraq_dspy.records import Document, Entity
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

ASKED_AT_ONCE = 4
"""Questions in flight. Nothing but a retriever that asks a model waits for anything."""

ALIKE = 1.2
"""Numbers of tokens whose ratio is below this one's are about the same."""

CANNOT_BE_TRIED = (ConfigError, IndexStateError, MissingExtraError, ModelError)
"""Why a retriever cannot be made; it is then left out, and the others go on."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a candidate takes of a question: model calls, a graph, tokens that an answer is paid for, seconds.

    `tokens` are those of the passages that it hands on, and those of its own model calls. It is ordered by what a user
    pays: tokens, of which a sixth more or less is the same, then calls, then a graph. Seconds do not count: they are
    others in each run.
    """

    calls: float
    needs_graph: bool
    tokens: float
    seconds: float

    @property
    def order(self) -> tuple[int, float, bool]:
        size = round(math.log(max(1.0, self.tokens), ALIKE))
        return size, self.calls, self.needs_graph


class RememberedQuestions:
    """An encoder that embeds each question once: all candidates are asked the same ones."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder = embedder
        self._rows: dict[str, Vectors] = {}

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.encode_passages(texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        unknown = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if unknown:
            self._rows |= dict(zip(unknown, self._embedder.encode_queries(unknown), strict=True))
        rows: Vectors = np.array([self._rows[text] for text in texts])
        return rows


class Deadline:
    """Passes progress on, and ends what runs when the time is over. What was done is kept, as at any limit."""

    def __init__(self, progress: Progress, minutes: float) -> None:
        self._progress = progress
        self._started = monotonic()
        self._seconds = 60 * minutes

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 if the time is over."""
        return self._started + self._seconds - monotonic()

    def start(self, stage: str, total: int | None) -> None:
        self._progress.start(stage, total)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self._progress.advance(stage, done, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        if self.left < 0:
            raise BudgetExceededError(f"The time of this run, {self._seconds / 60:g} min, is over.")

    def finish(self, stage: str) -> None:
        self._progress.finish(stage)


@dataclass(frozen=True)
class Indexes:
    """The indexes of a run, one for each size of chunks, in `folder`; `stack` closes those that were opened."""

    corpus: str | Path | Sequence[Document]
    folder: Path
    settings: Settings
    embedder: Embedder
    models: LanguageModels
    progress: Progress
    stack: ExitStack
    _opened: dict[tuple[int, bool], Workspace] = field(default_factory=dict)

    def opened(self, tokens: int, *, graph: bool) -> Workspace:
        """The index of that size, made now or gone on with if it is not complete. Its owner selects, so labels hide
        nothing."""
        if (tokens, graph) not in self._opened:
            path = self.folder / f"chunks-{tokens}.kraq"
            settings = dataclasses.replace(self.settings, chunks=chunks_of(tokens, self.settings.chunks))
            if not self._is_complete(path, graph=graph):
                make = build_index if graph else build_vectors
                make(
                    self.corpus,
                    path,
                    settings=settings,
                    lm=self.models,
                    embedder=self.embedder,
                    progress=self.progress,
                )
            space = Workspace.open(path, settings=settings, embedder=self.embedder, lm=self.models)
            self._opened[tokens, graph] = self.stack.enter_context(space.owned())
        return self._opened[tokens, graph]

    def _is_complete(self, path: Path, *, graph: bool) -> bool:
        if not (path / "manifest.json").exists():
            return False
        try:
            with Workspace.open(path, settings=self.settings, embedder=self.embedder, lm=self.models) as space:
                return not graph or bool(space.owned().index.count(Entity))
        except IndexStateError:  # one that is under way
            return False


@dataclass
class Race:
    """Questions asked of candidates. Rows are kept by `writer`, so what was asked before is not asked again.

    `dropped` says of each candidate that is out, and of whatever else was not tried, why.
    """

    plan: SelectionPlan
    examples: Sequence[Example]
    metric: str
    indexes: Indexes
    writer: RowWriter
    deadline: Deadline
    prices: Mapping[str, Price]
    dropped: dict[str, str] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that were asked all questions, best first, or as many as there was time for."""
        running = list(candidates)
        for count in rungs(len(self.examples)):
            still_running = self._ask_all(running, count)
            if not still_running:
                break
            ranked = self.ranked(still_running)
            running = ranked if count == len(self.examples) else better_half(ranked)
            for candidate in ranked[len(running) :]:
                self.dropped[candidate.name] = f"in the worse half after {counted(count, 'question')}"
        return running

    def ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The best first; of equal ones the cheapest, then by name."""
        return sorted(candidates, key=lambda each: (-self.mean(each), self.cost(each).order, each.name))

    def scores(self, candidate: Candidate) -> dict[str, float]:
        """The scores by question, of those that the candidate was asked; a question that failed
        counts as 0."""
        return {row.question_id: row.metrics.get(self.metric, 0.0) for row in self.rows(candidate)}

    def rows(self, candidate: Candidate) -> list[ResultRow]:
        """What the candidate was asked, in the order of the questions' ids."""
        own = [row for row in self.writer.rows() if row.system == candidate.name]
        return sorted(own, key=lambda row: row.question_id)

    def by_half(self, candidate: Candidate) -> dict[str, dict[str, float]]:
        """The scores by half and question, where the questions are a test set's."""
        return scores_by_half(self.rows(candidate), self.metric)

    def mean(self, candidate: Candidate) -> float:
        """The mean over the halves, if there are two, otherwise over the questions."""
        by_half = self.by_half(candidate)
        return mean_of_halves(by_half) if has_halves(by_half) else _mean(list(self.scores(candidate).values()))

    def cost(self, candidate: Candidate) -> Cost:
        """Means over the questions that the candidate was asked."""
        rows = [row for row in self.rows(candidate) if row.failure is None]
        usage = [row.extra["usage"] for row in rows]
        of_models = [each.get("prompt_tokens", 0) + each.get("completion_tokens", 0) for each in usage]
        return Cost(
            calls=_mean([each["calls"] for each in usage]),
            needs_graph=candidate.needs_graph,
            tokens=_mean([row.extra["tokens"] + own for row, own in zip(rows, of_models, strict=True)]),
            seconds=_mean([float(row.timings[TOTAL]) for row in rows]),  # type: ignore[arg-type]
        )

    def _ask_all(self, candidates: Sequence[Candidate], count: int) -> list[Candidate]:
        """Those that could be asked the first `count` questions in time, and hand on no more than they may."""
        stage = f"ask {counted(count, 'question')}"
        self.deadline.start(stage, len(candidates) * count)
        in_time = []
        for candidate in candidates:
            try:
                self._ask(candidate, self.examples[:count], stage)
            except BudgetExceededError as error:
                self.dropped[candidate.name] = str(error).rstrip(".")
                continue
            except CANNOT_BE_TRIED as error:
                self.dropped[candidate.name] = str(error)
                continue
            if reason := self._refused(candidate):
                self.dropped[candidate.name] = reason
            else:
                in_time.append(candidate)

        self.deadline.finish(stage)
        return in_time

    def _refused(self, candidate: Candidate) -> str:
        """Why a candidate that was asked is out all the same; "" if it is not."""
        failures = [row.failure for row in self.rows(candidate)]
        if None not in failures:
            return f"every question failed: {failures[0]}"
        tokens = self.cost(candidate).tokens
        if tokens > self.plan.context:
            return f"hands on {tokens:,.0f} tokens, more than {self.plan.context:,}"
        return ""

    def _ask(self, candidate: Candidate, examples: Sequence[Example], stage: str) -> None:
        """A row for each question that has none. Raises BudgetExceededError if the time or a budget is over."""
        todo = [example for example in examples if (candidate.name, example.id) not in self.writer.done]
        self.deadline.advance(stage, len(examples) - len(todo))
        if not todo:
            return
        retrieve = self.indexes.opened(candidate.tokens, graph=candidate.needs_graph).retriever(candidate.retriever)
        system = AskedSystem(candidate.name, retrieve, answers=False)
        scorer = RowScorer([self.metric], self.indexes.embedder)
        asking = Asking(system, scorer, self.prices, None, candidate.k, counts_tokens=True)

        for row in as_done(asking, todo, limit=ASKED_AT_ONCE):
            self.writer.write(row)
            self.deadline.advance(stage)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
