"""Holds what the rows of a table on one data set are made with: settings, models, index, and the file they go to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import new_manifest, to_fields
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.about import about_choice, about_retriever
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.datasets.dataset import checksum_of
from kraq_dspy.eval.judges import JUDGED
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, forget_failed, write_rows
from kraq_dspy.eval.scoring import RowScorer
from kraq_dspy.indexing.index.in_place import asked_in_place
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.tables import systems
from kraq_dspy.papers.tables.data import ExampleSet
from kraq_dspy.papers.tables.indexes import PreparedIndex, prepare_index
from kraq_dspy.papers.tables.table import EvalTable, System
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.records import Chunk
from kraq_dspy.settings import ROLES, Settings
from kraq_dspy.signatures import GenerateQuestion
from kraq_dspy.workspace.choosing import default_of


@dataclass(frozen=True)
class RunOptions:
    """`data` is a folder of data sets or one itself; `out` gets a folder for each data set; indexes are shared by all
    tables that name the same `indexes`. `samples` are numbers of questions by data set, which `limit` bounds. `models`
    makes those that answer and judge, by default from the settings. With `strict_generator`, an index is refused in
    which templates asked more than half of the generator's questions. `tell` gets a sentence on the cost of each data
    set before anything of it is asked. `describe` says what a corpus is about (`optimize.describe_domain`)."""

    data: Path
    out: Path
    indexes: Path
    limit: int | None = None
    samples: Mapping[str, int | None] = field(default_factory=dict)
    tokens: int | None = None
    seed: int = 0
    ablations: bool = True
    retry_failed: bool = False
    strict_generator: bool = False
    tell: Callable[[str], None] | None = None
    describe: Callable[..., Any] | None = None
    bertscore: Callable[[], BertScorer] = BertScorer
    models: Callable[[Settings, Embedder], LanguageModels] | None = None

    def limit_of(self, dataset: str) -> int | None:
        return min((each for each in (self.limit, self.samples.get(dataset)) if each is not None), default=None)


@dataclass
class Run:
    """A table on one data set."""

    table: EvalTable
    questions: ExampleSet
    settings: Settings
    embedder: Embedder
    options: RunOptions
    progress: Progress
    notes: Sequence[str] = ()

    @property
    def concurrency(self) -> int:
        return self.table.concurrency or self.settings.run.concurrency

    def systems(self) -> tuple[list[tuple[System, Settings]], list[str]]:
        """What `systems.distinct` makes of the table's systems for this data set."""
        return systems.distinct(self.table.systems_for(self.questions.dataset.name), self.settings)

    def models(self, settings: Settings) -> LanguageModels:
        make = self.options.models
        return make(settings, self.embedder) if make else LanguageModels(settings, embedder=self.embedder)

    def scorer(self, models: LanguageModels) -> RowScorer:
        judge_lm = None if JUDGED.keys().isdisjoint(self.table.metrics) else models["judge"]
        scorer = RowScorer(self.table.metrics, self.embedder, judge_lm)
        if self.table.as_paper:
            for judge in scorer.judges.values():
                self.table.as_paper.give_prompts(judge)
        return scorer

    def index(
        self, settings: Settings, *, random_questions: bool = False, optimized: Sequence[Path] = ()
    ) -> PreparedIndex:
        """The data set's index, made with these settings; a warning about its generator is a note of the run.

        Raises EvaluationError, with `strict_generator`, where templates asked more than half of the questions.
        """
        prepared = prepare_index(
            self.questions.dataset,
            self.options.indexes,
            settings,
            self.embedder,
            random_questions=random_questions,
            optimized=optimized,
            setup=self.table.as_paper,
            progress=self.progress,
        )
        instructions = GenerateQuestion.instructions
        if self.table.as_paper:
            instructions = self.table.as_paper.prompts.get(GenerateQuestion.__name__, instructions)
        with Index.open(prepared.path) as opened:
            in_place = asked_in_place(opened, instructions)
        if in_place and self.options.strict_generator:
            raise EvaluationError(
                f"{self.questions.dataset.name}: {in_place} Name another model for the role generator, or run without "
                "--strict-generator."
            )
        if in_place and str(in_place) not in self.notes:
            self.notes = [*self.notes, str(in_place)]
        return prepared

    def writer(
        self, folder: Path, index: PreparedIndex | None, extra: Mapping[str, Any], *, bertscore: str = ""
    ) -> RowWriter:
        """The run's rows, those of an earlier run of the same command included, or of one with a smaller limit."""
        default_retriever = ""
        passages: dict[str, int] = {}
        manifest = new_manifest(self.settings, self.embedder.name, self.embedder.dimension)
        if index is not None:
            with Index.open(index.path) as opened:
                manifest = opened.manifest
                default_retriever = self.settings.ask.retriever or default_of(opened)
                passages = {"passages": opened.count(Chunk)}

        dataset = self.questions.dataset
        models = self._models(manifest.models.get("extractor", ""), bertscore)
        states, setup = systems.state_digests(self.table), self.table.as_paper
        default = self.settings.role("default").model
        header = RunHeader(
            name=self.table.name,
            dataset=dataset.name,
            # As the manifest writes them: without passwords in addresses.
            settings=to_fields(replace(manifest, settings=self.settings))["settings"],
            seeds={"seed": self.options.seed},
            models=models,
            index_fingerprint=index.fingerprint if index else "",
            extra={
                "table": self._described(default_retriever),
                "asked": len(self.questions.examples),
                "not_asked": self.questions.left_out,
                "data": checksum_of(dataset.examples, dataset.documents),
                "documents": len(dataset.documents),
                **passages,
                "sample_tokens": self.options.tokens,
                "in_flight": self.concurrency,
                **({"states": states} if states else {}),
                **({"paper": setup.described({**models, "default": default})} if setup else {}),
                **extra,
                "notes": [*self.notes, *extra.get("notes", ())],
            },
        )
        if self.options.retry_failed:
            forget_failed(folder)
        return RowWriter(folder, header)

    def _models(self, extractor: str, bertscore: str) -> dict[str, str]:
        """The models by role, and what is no role: the encoders, and who extracted the index and
        summarised for K2RAG."""
        settings = self.settings
        models = {role: settings.role(role).model for role in ROLES if role != "default"}
        models |= {"encoder": self.embedder.name, "index extractor": extractor, "bertscore": bertscore}
        choices = [
            systems.program_of(system, paper=self.table.of_papers)
            for system in self.table.systems
            if self.table.kind == "answers"
        ]
        if any("instructed" in choice.settings for choice in choices):
            models["instructed"] = f"{settings.instructed.kind}, {settings.instructed.name}"
        if self.table.as_paper and "summariser" in self.table.as_paper.models:
            models["summariser"] = settings.k2rag.summariser or models["summarizer"]
        return {role: name for role, name in models.items() if name}

    def _described(self, default_retriever: str) -> dict[str, Any]:
        """Return what the report needs to know of the table."""
        table, dataset = self.table, self.questions.dataset.name

        def about(system: System) -> dict[str, Any]:
            if table.kind == "retrievers":
                return {"about": about_retriever(system.use, self.embedder.name, table.budgets)}
            if table.kind != "answers":
                return {}
            choice = systems.program_of(system, seed=self.options.seed, paper=table.of_papers)
            settings = systems.settings_of(system, self.settings)
            return {"about": about_choice(choice, settings, self.embedder.name, default_retriever)}

        return {
            "title": table.title,
            "kind": table.kind,
            "baseline": table.baseline,
            "metrics": list(table.metrics),
            "folds": table.folds,
            "budgets": list(table.budgets),
            **({"setup": table.paper.setup} if table.paper.setup else {}),
            **({"papers": list(table.papers)} if table.papers else {}),
            "systems": {
                system.name: {"use": system.use, **system.options, **about(system)}
                for system in table.systems_for(dataset)
            },
        }

    def ask_all(
        self,
        name: str,
        work: Callable[[Example], ResultRow],
        writer: RowWriter,
        *,
        at_once: int,
        examples: Sequence[Example] | None = None,
    ) -> None:
        """A row for each question that has none yet. Raises ModelError if nothing but failures come."""
        chosen = self.questions.examples if examples is None else examples
        write_rows(name, partial(as_done, work, limit=at_once), chosen, writer, self.progress)
