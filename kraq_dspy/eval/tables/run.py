"""Holds what the rows of a table on one data set are made with: settings, models, index, and the file they go to."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import new_manifest, now, to_fields
from kraq_dspy.eval.agreement import known_agreements
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.rows import (
    HEADER_FILE,
    ROWS_FILE,
    ResultRow,
    RowWriter,
    RunHeader,
    data_checksum,
    machine,
    model_checksums,
    read_header,
    read_rows,
    write_rows,
)
from kraq_dspy.eval.tables import systems
from kraq_dspy.eval.tables.data import ExampleSet, PreparedIndex, prepare_index
from kraq_dspy.eval.tables.scoring import RowScorer, is_judged
from kraq_dspy.eval.tables.table import EvalTable, System
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.settings import ROLES, Settings
from kraq_dspy.workspace.workspace import default_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunOptions:
    """`data` is a folder of data sets or one itself; `out` gets a folder for each data set; indexes are shared by all
    tables that name the same `indexes`. `samples` are numbers of questions by data set, which `limit` bounds. `models`
    makes those that answer and judge, by default from the settings."""

    data: Path
    out: Path
    indexes: Path
    limit: int | None = None
    samples: Mapping[str, int | None] = field(default_factory=dict)
    tokens: int | None = None
    seed: int = 0
    ablations: bool = True
    retry_failed: bool = False
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

    def models(self, settings: Settings) -> LanguageModels:
        make = self.options.models
        return make(settings, self.embedder) if make else LanguageModels(settings, embedder=self.embedder)

    def scorer(self, models: LanguageModels) -> RowScorer:
        judged = any(map(is_judged, self.table.metrics))
        scorer = RowScorer(self.table.metrics, self.embedder, models["judge"] if judged else None)
        if self.table.as_paper:
            for judge in scorer.judges:
                self.table.as_paper.give_prompts(judge)
        return scorer

    def index(
        self, settings: Settings, *, random_questions: bool = False, program_states: Sequence[Path] = ()
    ) -> PreparedIndex:
        return prepare_index(
            self.questions.dataset,
            self.options.indexes,
            settings,
            self.embedder,
            random_questions=random_questions,
            program_states=program_states,
            setup=self.table.as_paper,
            progress=self.progress,
        )

    def writer(
        self, folder: Path, index: PreparedIndex | None, extra: Mapping[str, Any], *, bertscore: str = ""
    ) -> RowWriter:
        """The run's rows, those of an earlier run of the same command included, or of one with a smaller limit."""
        default_retriever = ""
        manifest = new_manifest(self.settings, self.embedder.name, self.embedder.dimension)
        if index is not None:
            with Index.open(index.path) as opened:
                manifest = opened.manifest
                default_retriever = default_of(opened)
        roles = {role: self.settings.role(role).model for role in ROLES if role != "default"}
        models = {
            **roles,
            "encoder": self.embedder.name,
            **{f"index {r}": m for r, m in manifest.models.items() if r == "extractor"},
        }
        if bertscore:
            models["bertscore"] = bertscore
        if self.table.kind == "answers" and any(
            "instructed" in systems.program_of(each, paper=self.table.of_papers).settings for each in self.table.systems
        ):
            models["instructed"] = f"{self.settings.instructed.kind}, {self.settings.instructed.name}"
        if (setup := self.table.as_paper) and "summariser" in setup.models:
            models["summariser"] = self.settings.k2rag.summariser or models["summarizer"]
        header = RunHeader(
            name=self.table.name,
            dataset=self.questions.dataset.name,
            # As the manifest writes them: without passwords in addresses.
            settings=to_fields(replace(manifest, settings=self.settings))["settings"],
            seeds={"seed": self.options.seed},
            models=models,
            index_fingerprint=index.fingerprint if index else "",
            library_version=version("kraq-dspy"),
            created_at=now(),
            extra={
                "table": self._described(default_retriever),
                **self._asked(self.questions.examples),
                "documents": len(self.questions.dataset.documents),
                "sample_tokens": self.options.tokens,
                "in_flight": self.concurrency,
                **self._agreement(),
                "weights": model_checksums(self.settings),
                **({"states": states} if (states := systems.state_digests(self.table)) else {}),
                **({"paper": setup.told({**models, "default": self.settings.role("default").model})} if setup else {}),
                **extra,
                "notes": [*self.notes, *extra.get("notes", ())],
            },
            made_with=machine(),
        )
        if self.options.retry_failed:
            forget_failed(folder)
        return RowWriter(folder, header, self._with_fewer(header, folder))

    def _agreement(self) -> dict[str, Any]:
        """How far the judge was found to agree with labels, where a judge is asked and that was measured."""
        if not any(map(is_judged, self.table.metrics)):
            return {}
        return {"judge_agreement": known_agreements(self.settings.role("judge").model)}

    def _asked(self, examples: Sequence[Example]) -> dict[str, Any]:
        dataset, known = self.questions.dataset, len(self.questions.examples) + self.questions.left_out
        return {
            "asked": len(examples),
            "not_asked": known - len(examples),
            "data": data_checksum(dataset, examples),
        }

    def _with_fewer(self, header: RunHeader, folder: Path) -> RunHeader | None:
        """The header as a run in that folder had it which asked fewer questions: the first ones of the same draw."""
        if not (folder / HEADER_FILE).is_file():
            return None
        asked = read_header(folder).extra.get("asked")
        if not isinstance(asked, int) or asked >= len(self.questions.examples):
            return None
        return replace(header, extra={**header.extra, **self._asked(self.questions.examples[:asked])})

    def _described(self, default_retriever: str) -> dict[str, Any]:
        """What the report needs to know of the table."""
        table, dataset = self.table, self.questions.dataset.name
        return {
            "title": table.title,
            "kind": table.kind,
            "baseline": table.baseline,
            "metrics": list(table.metrics),
            "budgets": list(table.budgets),
            **({"setup": table.paper.setup} if table.paper.setup else {}),
            **({"papers": list(table.papers)} if table.papers else {}),
            "systems": {
                system.name: {"use": system.use, **system.options, **self._about(system, default_retriever)}
                for system in table.systems_for(dataset)
            },
            "ablations": [
                {"parameter": each.parameter, "of": each.of, "points": [list(point) for point in each.points]}
                for each in table.ablations
                if each.covers(dataset)
            ],
        }

    def _about(self, system: System, default_retriever: str) -> dict[str, Any]:
        """Program, retriever, model, encoder and budget, where the table compares these."""
        if self.table.kind == "retrievers":
            return {"about": systems.about_retriever(system.use, self.embedder.name, self.table.budgets)}
        if self.table.kind != "answers":
            return {}
        choice = systems.program_of(system, seed=self.options.seed, paper=self.table.of_papers)
        settings = systems.settings_of(system, self.settings)
        return {"about": systems.about_choice(choice, settings, self.embedder.name, default_retriever)}

    def ask_all(
        self,
        name: str,
        work: Callable[[Example], ResultRow],
        writer: RowWriter,
        *,
        at_once: int,
        examples: Sequence[Example] | None = None,
    ) -> None:
        """A row for each question that has none yet. Raises ModelError where nothing but failures come."""
        chosen = self.questions.examples if examples is None else examples
        write_rows(name, work, chosen, writer, at_once=at_once, progress=self.progress)


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
