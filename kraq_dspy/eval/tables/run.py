"""Runs a table: each system over each question of each data set, a row on disk as soon as it is there."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import dspy

from kraq_dspy.concurrency import as_done
from kraq_dspy.config import Settings
from kraq_dspy.errors import (
    BudgetExceededError,
    ConfigError,
    IndexStateError,
    MissingExtraError,
    MissingLogprobsError,
    ServerDownError,
)
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.rows import ROWS_FILE, Row, RowWriter, RunHeader, read_rows
from kraq_dspy.eval.tables import question_quality, systems
from kraq_dspy.eval.tables.data import Asked, load
from kraq_dspy.eval.tables.indexes import PreparedIndex, prepare_index, prepared
from kraq_dspy.eval.tables.scoring import Scorer
from kraq_dspy.eval.tables.table import System, Table
from kraq_dspy.files import replaced
from kraq_dspy.lms.journal import Answer, TappedJournal, working_on
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.records import Usage
from kraq_dspy.steps.kept import StageFailures
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.manifest import now, to_fields
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.specs import ProgramChoice

logger = logging.getLogger(__name__)

_ENDS_THE_RUN = (
    BudgetExceededError, ServerDownError, MissingLogprobsError, MissingExtraError, ConfigError, IndexStateError,
)  # fmt: skip


@dataclass(frozen=True)
class RunOptions:
    """`data` is a folder of data sets or one itself; `out` gets a folder for each data set; indexes are shared by all
    tables that name the same `indexes`. `models` makes those that answer and judge, by default from the settings."""

    data: Path
    out: Path
    indexes: Path
    limit: int | None = None
    tokens: int | None = None
    seed: int = 0
    ablations: bool = True
    retry_failed: bool = False
    bertscore: Callable[[], BertScorer] = BertScorer
    models: Callable[[Settings, Embedder], LanguageModels] | None = None


def run_table(
    table: Table, names: Sequence[str], settings: Settings, options: RunOptions, progress: Progress | None = None
) -> list[Path]:
    """The folders of the runs, one for each data set. What an earlier run of the same table did is not done again.

    Raises EvaluationError for a data set that is absent, or when a folder holds another run; ModelError when a system
    does nothing but fail; what was done is kept.
    """
    progress = progress or SilentProgress()
    if not options.ablations:
        kept = tuple(system for system in table.systems if not system.varied)
        table = replace(table, systems=kept, ablations=())
    questions_of = {
        name: load(options.data, name, tokens=options.tokens, limit=options.limit, seed=options.seed) for name in names
    }
    settings, embedder = prepared(settings)
    folders = []
    for name, questions in questions_of.items():
        run = _Run(table, questions, settings, embedder, options, progress)
        folders.append(options.out / name)
        if table.kind == "questions":
            run.measure_questions(options.out / name)
        else:
            run.measure_systems(options.out / name)
    return folders


@dataclass
class _Run:
    """A table on one data set."""

    table: Table
    questions: Asked
    settings: Settings
    embedder: Embedder
    options: RunOptions
    progress: Progress

    @property
    def concurrency(self) -> int:
        return self.table.concurrency or self.settings.run.concurrency

    def measure_systems(self, folder: Path) -> None:
        """Programs or retrievers."""
        index = self._index(self.settings)
        models = self.options.models(self.settings, self.embedder) if self.options.models else None
        if needed := systems.needed(self.table):
            systems.prepare(index.path, needed, self.settings, self.embedder, models, self.progress)
        with Workspace.open(index.path, settings=self.settings, embedder=self.embedder, models=models) as space:
            writer = self._writer(folder, index, {})
            judged = any(metric in ("judge", "rubric") for metric in self.table.metrics)
            scorer = Scorer(self.table.metrics, self.embedder, space.models["judge"] if judged else None)
            chosen = self.table.systems_for(self.questions.dataset.name)
            # All are made before the first is run: what cannot be made ends the run before it costs.
            for system, work, at_once in [self._work(space, system, scorer) for system in chosen]:
                self._run(system, work, at_once, writer)
            space.models.close()

    def measure_questions(self, folder: Path) -> None:
        """Question sets against the data set's questions."""
        sets: dict[str, list[str]] = {}
        notes: list[str] = []
        first: PreparedIndex | None = None
        for system in self.table.systems_for(self.questions.dataset.name):
            settings = question_quality.settings_of(system, self.settings)
            if settings is None:
                notes.append(f"{system.name} is left out: its generator is the same model as the role generator's.")
                continue
            index = self._index(settings)
            first = first or index
            with Index.open(index.path) as opened:
                records = opened.questions(source=system.use, duplicates=True)
            sets[system.name] = [question.text for question in records]
        assert first is not None, "a table has systems"
        scorer = self.options.bertscore()
        extra = {"questions": {name: len(texts) for name, texts in sets.items()}, "notes": notes}
        writer = self._writer(folder, first, extra, bertscore=f"{scorer.name}, layer {scorer.layer}")
        for name, texts in sets.items():
            self.progress.start(name, len(self.questions.examples))
            self.progress.advance(name, sum(system == name for system, _ in writer.done))
            todo = [each for each in self.questions.examples if (name, each.id) not in writer.done]
            for row in question_quality.rows(name, todo, texts, self.embedder, scorer, self.table.metrics):
                writer.write(row)
                self.progress.advance(name)
            self.progress.finish(name)

    def _index(self, settings: Settings) -> PreparedIndex:
        return prepare_index(
            self.questions.dataset,
            self.options.indexes,
            settings,
            self.embedder,
            random_questions=self.table.needs_random_questions,
            progress=self.progress,
        )

    def _writer(
        self, folder: Path, index: PreparedIndex, extra: Mapping[str, Any], *, bertscore: str = ""
    ) -> RowWriter:
        with Index.open(index.path) as opened:
            manifest = opened.manifest
        roles = {
            role: self.settings.role(role).model for role in ("answerer", "drafter", "verifier", "judge", "generator")
        }
        models = {
            **roles,
            "encoder": self.embedder.name,
            **{f"index {r}": m for r, m in manifest.models.items() if r == "extractor"},
        }
        if bertscore:
            models["bertscore"] = bertscore
        if self.table.kind == "answers" and any(
            "instructed" in systems.program_of(each).settings for each in self.table.systems
        ):
            models["instructed"] = f"{self.settings.instructed.kind}, {self.settings.instructed.name}"
        header = RunHeader(
            name=self.table.name,
            dataset=self.questions.dataset.name,
            # As the manifest writes them: without passwords in addresses.
            settings=to_fields(replace(manifest, settings=self.settings))["settings"],
            seeds={"seed": self.options.seed},
            models=models,
            index_fingerprint=index.fingerprint,
            library_version=version("kraq-dspy"),
            created_at=now(),
            extra={
                "table": _described(self.table, self.questions.dataset.name),
                "asked": len(self.questions.examples),
                "not_asked": self.questions.left_out,
                "documents": len(self.questions.dataset.documents),
                "sample_tokens": self.options.tokens,
                "in_flight": self.concurrency,
                **({"states": states} if (states := systems.state_digests(self.table)) else {}),
                **extra,
            },
        )
        if self.options.retry_failed:
            forget_failed(folder)
        return RowWriter(folder, header)

    def _run(self, system: System, work: Callable[[Example], Row], at_once: int, writer: RowWriter) -> None:
        todo = [example for example in self.questions.examples if (system.name, example.id) not in writer.done]
        self.progress.start(system.name, len(self.questions.examples))
        self.progress.advance(system.name, len(self.questions.examples) - len(todo))
        failures = StageFailures(
            system.name,
            f"questions of {system.name!r}",
            again="run the same command with --retry-failed: what was done is kept",
        )
        if len(todo) < len(self.questions.examples):
            failures.succeed()
        for row in as_done(work, todo, limit=at_once):
            writer.write(row)
            self.progress.advance(system.name)
            if row.failure is None:
                failures.succeed()
            else:
                failures.add(row.question_id, row.failure)
        self.progress.finish(system.name)

    def _work(self, space: Workspace, system: System, scorer: Scorer) -> tuple[System, Callable[[Example], Row], int]:
        """The system, what it does with a question, and how many of them at once."""
        if self.table.kind == "retrievers":
            return system, self._finder(space, system, scorer), self.concurrency
        choice = systems.program_of(system, seed=self.options.seed)
        program = systems.make_program(space, system, choice)
        at_once = max(1, self.concurrency // choice.calls_at_once)
        return system, self._answerer(space, system, choice, program, scorer), at_once

    def _answerer(
        self, space: Workspace, system: System, choice: ProgramChoice, program: dspy.Module, scorer: Scorer
    ) -> Callable[[Example], Row]:

        def answer(example: Example) -> Row:
            spent = _Spent()
            facts = _facts(example)
            try:
                with working_on(system.name, example.id, spent), dspy.context(disable_history=True):
                    prediction = space.ask(program, example.question)
            except _ENDS_THE_RUN:
                raise
            except Exception as error:  # noqa: BLE001 (costs its question; the reason is the row)
                return Row(example.id, system.name, failure=_reason(error), extra={**facts, "usage": spent.to_dict()})
            try:
                scores = scorer(example, prediction, choice.budget)
            except _ENDS_THE_RUN:
                raise
            except Exception as error:  # noqa: BLE001
                return Row(example.id, system.name, answer=str(prediction.answer), failure=_reason(error), extra=facts)
            return Row(
                example.id,
                system.name,
                answer=str(prediction.answer),
                metrics=scores.values,
                failed_metrics=scores.failed,
                timings=systems.timings_of(choice, prediction),
                hit_ids=tuple(hit.chunk.id for hit in prediction.hits),
                extra={**facts, "undefined": scores.undefined, "usage": spent.to_dict()},
            )

        return answer

    def _finder(self, space: Workspace, system: System, scorer: Scorer) -> Callable[[Example], Row]:
        """Each budget is a search of its own: what a retriever finds with 5 need not be the best 5 of its 20."""
        retrieve = space.retriever(system.use, **system.options)
        of_budget = {
            budget: Scorer([name for name in scorer.names if name.endswith(f"@{budget}")], self.embedder)
            for budget in self.table.budgets
        }

        def find(example: Example) -> Row:
            values: dict[str, float] = {}
            undefined: list[str] = []
            seconds: dict[str, float] = {}
            hit_ids: tuple[str, ...] = ()
            spent = _Spent()  # some retrievers ask a model
            try:
                for budget, score in of_budget.items():
                    started = perf_counter()
                    with (
                        working_on(system.name, example.id, spent),
                        dspy.context(adapter=KraqAdapter(), disable_history=True),
                    ):
                        hits = retrieve(example.question, budget)
                    seconds[f"k={budget}"] = perf_counter() - started
                    scores = score(example, dspy.Prediction(answer="", hits=hits), budget)
                    values.update(scores.values)
                    undefined += scores.undefined
                    hit_ids = tuple(hit.chunk.id for hit in hits)
            except _ENDS_THE_RUN:
                raise
            except Exception as error:  # noqa: BLE001
                return Row(example.id, system.name, failure=_reason(error), extra=_facts(example))
            extra = {
                **_facts(example),
                "undefined": undefined,
                **({"usage": spent.to_dict()} if spent.usage.calls else {}),
            }
            return Row(example.id, system.name, metrics=values, timings=seconds, hit_ids=hit_ids, extra=extra)

        return find


class _Spent(TappedJournal):
    """Adds up what answers took."""

    def __init__(self) -> None:
        super().__init__(self._add)
        self.usage = Usage()
        self._lock = threading.Lock()

    def _add(self, answer: Answer) -> None:
        with self._lock:
            self.usage += answer.usage

    def to_dict(self) -> dict[str, int]:
        return {
            "calls": self.usage.calls,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
        }


def forget_failed(folder: Path) -> int:
    """Drops the rows that failed, so that they are tried again; says how many."""
    path = folder / ROWS_FILE
    if not path.exists():
        return 0
    failed = [number for number, row in enumerate(read_rows(path)) if row.failure is not None or row.failed_metrics]
    if failed:
        lines = path.read_bytes().splitlines(keepends=True)
        dropped = set(failed)
        with replaced(path) as draft:
            draft.write_bytes(b"".join(line for number, line in enumerate(lines) if number not in dropped))
    return len(failed)


def _facts(example: Example) -> dict[str, Any]:
    """What the report shows beside an answer."""
    return {"question": example.question, "gold": list(example.answers[:5]), "type": example.type}


def _reason(error: Exception) -> str:
    text = str(error) or "no message"
    return f"{type(error).__name__}: {text if len(text) <= 500 else text[:500] + '...'}"


def _described(table: Table, dataset: str) -> dict[str, Any]:
    """What the report needs to know of the table."""
    return {
        "title": table.title,
        "kind": table.kind,
        "baseline": table.baseline,
        "metrics": list(table.metrics),
        "budgets": list(table.budgets),
        "systems": {system.name: {"use": system.use, **system.options} for system in table.systems_for(dataset)},
        "ablations": [
            {"parameter": each.parameter, "of": each.of, "points": [list(point) for point in each.points]}
            for each in table.ablations
            if each.covers(dataset)
        ],
    }
