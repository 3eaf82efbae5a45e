"""Makes a view of an index: an index of its own, of some of the documents and of what is made of these alone.

Nothing is taken out of a copy of the whole: the view begins empty, and gets what its documents lead to. So whatever is
forgotten here is missing in the view, and does not leak into it.

- Documents, their passages and what was extracted from each are taken over, and the vectors of the passages with them.
- Names are resolved, the graph built and communities found again, from these extractions. So all numbers (degrees,
  weights, levels, BM25's and PageRank's statistics) are those of an index of these documents alone.
- Descriptions, summaries and questions are those of the whole index where their inputs are the same: then they hold
  nothing of other documents. Others are made again, by the rule-based engine unless models are given.
- What `kraq precompute` made, each preparation takes over itself (`Preparation.carry`).
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset import consent
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.sync import Point, batches, chunk_point
from kraq_dspy.asset.store.vectors.copying import copy_points
from kraq_dspy.indexing.index.finishing import BuildParts, Finishing
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.indexing.refusals.threshold import PACKAGED, packaged_points
from kraq_dspy.indexing.view.steps import ViewSteps
from kraq_dspy.language.analysis import READ
from kraq_dspy.models.lms.roles import LanguageModels, rule_based_models
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Chunk, Document, Extraction, Question
from kraq_dspy.settings import Settings, StoreSettings

_AT_ONCE = 500  # records that are read and written at once

MakePipeline = Callable[[Settings, Embedder], KRAQ]


def make_view(
    whole: Index,
    out: Path,
    document_ids: Collection[str],
    embedder: Embedder,
    *,
    models: LanguageModels | None = None,
    pipeline: MakePipeline = KRAQ,
    progress: Progress | None = None,
) -> None:
    """Make the index `out` of these documents of `whole`; ids that it does not have do not matter.

    `models` write what cannot be taken over; without them the rule-based engine does, and nothing is asked elsewhere.
    Raises what `Index.create` raises.
    """
    manifest = whole.manifest
    with Index.create(
        out,
        _own_settings(manifest.settings),
        encoder_name=embedder.name,
        encoder_dimension=embedder.dimension,
        readers=access.of_folder(whole.path),
    ) as view:
        _take_documents(whole, view, document_ids)
        _take_chunk_vectors(whole, view)
        copy_points(whole, view, PACKAGED, packaged_points())

        models = models or rule_based_models(embedder)
        parts = BuildParts(
            index=view,
            settings=view.manifest.settings,
            models=models,
            embedder=embedder,
            kraq=pipeline(manifest.settings, embedder),
            steps=ViewSteps(whole.results, manifest.models, models, progress or SilentProgress()),
            progress=progress or SilentProgress(),
            random_questions=bool(whole.questions(source="random", duplicates=True)),
        )
        run_coroutine(ViewFinishing(parts, whole).finish())
        view.update_manifest(models=manifest.models)

        def make_part(other: Index, folder: Path, of: MakePipeline) -> None:
            make_view(other, folder, document_ids, embedder, models=models, pipeline=of, progress=progress)

        for preparation in PREPARATIONS.values():
            preparation.carry(whole, view, embedder, make_part)


class ViewFinishing(Finishing):
    """The stages behind extraction; the vectors of questions that the whole index asks in the same words are taken."""

    def __init__(self, parts: BuildParts, whole: Index) -> None:
        super().__init__(parts)
        self._whole = whole

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        known = self._whole.known(Question, [question.id for question in questions])
        stored = {question.id: question.text for question in self._whole.get(Question, sorted(known))}

        same = [question for question in questions if stored.get(question.id) == question.text]
        points = [Point(each.id, each.text, {"level": each.level, "source": each.source}) for each in same]
        copy_points(self._whole, self._index, "questions", points)
        super()._keep_questions(questions)


def _own_settings(settings: Settings) -> Settings:
    """Take the settings of the whole index, but nothing that leads elsewhere: a view lies on this
    machine, and asks nobody."""
    bare = consent.without_encoder(consent.without_models(settings))
    return dataclasses.replace(bare, store=StoreSettings())


def _take_documents(whole: Index, view: Index, document_ids: Collection[str]) -> None:
    allowed = frozenset(document_ids)
    in_scope = (document_id for document_id in whole.ids(Document) if document_id in allowed)
    for some in batches(in_scope, _AT_ONCE):
        view.add(dataclasses.replace(document, labels=()) for document in whole.get(Document, some))

    order = whole.reading_order(view.ids(Document))
    for some in batches((chunk_id for chunk_id in whole.ids(Chunk) if chunk_id in order), _AT_ONCE):
        view.add(whole.get(Chunk, some))
        view.results.take(READ, whole.results, some)
        extracted = whole.known(Extraction, some)
        view.add(whole.get(Extraction, [chunk_id for chunk_id in some if chunk_id in extracted]))


def _take_chunk_vectors(whole: Index, view: Index) -> None:
    copy_points(whole, view, "chunks", _chunk_points(view))


def _chunk_points(view: Index) -> Iterable[Point]:
    return (chunk_point(chunk) for chunk in view.all(Chunk))
