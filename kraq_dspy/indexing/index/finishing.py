"""Leads a build from extractions to questions: the graph, its communities, their summaries, and their vectors."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from kraq_dspy import __version__
from kraq_dspy._internal.recent import Recent
from kraq_dspy.asset.graph.build import Graph, ResolvedMentions
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.sync import Point, sync_vectors
from kraq_dspy.embedded_model import analyst
from kraq_dspy.indexing.refusals.scoring import PassageScorer
from kraq_dspy.indexing.refusals.threshold import Threshold, has_threshold, keep_threshold
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.kraq.asked_by import AskedBy
from kraq_dspy.programs.kraq.pipeline import KRAQ, in_reading_order
from kraq_dspy.programs.kraq.question_text import mark_duplicates
from kraq_dspy.records import SEARCH, Chunk, Claim, Community, Entity, Merge, Question, Relationship, Summary
from kraq_dspy.settings import AskSettings, RunSettings, Settings
from kraq_dspy.steps.bounded import ItemStream
from kraq_dspy.steps.kept import Stage, StoredSteps

NO_QUESTIONS = (
    "No names were found that the texts link to each other, so there are no questions about them; `kraq ask` "
    "answers by retrieval alone. A language model finds more: name one with --lm."
)
_REMEMBERED = 512  # passages, which communities within each other share
FINISHED = "index"  # the name under which it is noted that a build was finished, and need not look at everything
FOUND_ANEW = "communities"  # and this one, that its communities were found in the whole graph, and not followed


@dataclass(eq=False)
class BuildParts:
    """What the stages of a build work with: the index that they write, and what they write it by."""

    index: Index
    settings: Settings
    models: LanguageModels
    embedder: Embedder
    kraq: KRAQ
    steps: StoredSteps
    progress: Progress
    random_questions: bool = False  # whether as many questions are asked of random chunks, too
    stable: bool = False  # whether communities that are there already are kept as far as they can be
    extracted: set[str] = field(default_factory=set)  # ids of the chunks whose extractions this build makes
    problems: list[str] = field(default_factory=list)  # what a user should know

    @property
    def stages(self) -> list[Stage]:
        """Every stage that asks models, with its role and its program."""
        kraq = self.kraq
        stages: list[Stage] = [
            ("extract", "extractor", kraq.extract),
            ("confirm", "summarizer", kraq.confirm),
            ("describe", "summarizer", kraq.describe),
            ("summarize", "summarizer", kraq.summarize),
            ("ask", "generator", kraq.ask),
        ]
        if kraq.word is not None:
            stages.append(("word", "asker", kraq.word))
        if kraq.judge is not None:
            stages.append(("judge", "judge", kraq.judge))
        return stages

    @property
    def fingerprint(self) -> str:
        """The library's version, and all settings but those of how and with which models the build runs, and of what
        answers afterwards."""
        made_by = dataclasses.replace(self.settings, run=RunSettings(), roles={}, ask=AskSettings())
        fields = dataclasses.asdict(made_by)
        del fields["refusals"]
        return json.dumps(
            [__version__, analyst().made_by(), fields, self.random_questions], sort_keys=True, default=str
        )


class IndexedPassages:
    """The passages of an index, as templates read them."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._analyses = Recent[str, Analysis | None](_REMEMBERED)
        self._scorer = PassageScorer(index, embedder)

    def ids(self) -> Sequence[str]:
        return list(self._index.reading_order())

    def get(self, ids: Sequence[str]) -> Sequence[Chunk]:
        return self._index.get(Chunk, ids)

    def analyses(self, ids: Sequence[str]) -> Mapping[str, Analysis]:
        known = self._analyses.of(ids, self._read)
        return {id: analysis for id, analysis in zip(ids, known, strict=True) if analysis is not None}

    def _read(self, ids: Sequence[str]) -> list[Analysis | None]:
        analyses = analyst().analyses_of(self._index, ids)
        return [analyses.get(id) for id in ids]

    def nearest(self, questions: Sequence[str], count: int) -> list[list[str]]:
        if not questions:
            return []
        vectors = self._embedder.encode_queries(questions)
        nearest_chunks = self._index.chunk_vectors.search(vectors, count)
        return [[chunk_id for chunk_id, _ in hits] for hits in nearest_chunks]

    def by_words(self, question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        return self._scorer.by_words(question, chunks)


class Finishing:
    """The stages of a build behind extraction."""

    def __init__(self, parts: BuildParts) -> None:
        self._parts = parts
        self._index, self._settings, self._kraq = parts.index, parts.settings, parts.kraq
        self._steps, self._progress = parts.steps, parts.progress

    async def finish(self) -> None:
        """Lead the build from extractions to questions."""
        await self.finish_from(await self._make_graph(await self._resolve()))

    async def _resolve(self) -> ResolvedMentions:
        self._progress.start("graph", None)
        with self._only_current("confirm"):
            return await self._kraq.resolved(self._index.mentions(), self._steps)

    @contextmanager
    def _only_current(self, stage: str, among: Set[str] | None = None) -> Iterator[None]:
        """Forget the results of a stage that the block neither finds nor saves: of the items `among`, or of all."""
        with self._index.results.watching(stage) as current:
            yield
        self._index.results.forget_outdated(stage, current, among)

    async def _make_graph(self, resolved: ResolvedMentions) -> Graph:
        with self._only_current("describe"):  # a name may stay of which less is told than before
            graph = resolved.graph()
            del resolved  # gives back what it holds before a model is asked
            graph = await self._kraq.described(graph, self._steps)
        ids = {entity.id for entity in graph.entities} | {link.id for link in graph.relationships}
        self._index.results.prune("describe", ids)
        return graph

    async def finish_from(self, graph: Graph) -> None:
        """Do as `finish` does, with the graph of all extractions."""
        index = self._index
        document_of = index.reading_order()

        index.keep_passage_graph(graph.entities, graph.relationships)
        index.replace(Entity, graph.entities)
        index.replace(Relationship, graph.relationships)
        index.replace(Claim, graph.claims)
        index.replace(Merge, graph.merges)

        former: list[Community] = []
        if self._parts.stable:  # without the ids of relationships and chunks, most of their memory
            former = [
                dataclasses.replace(community, relationship_ids=(), chunk_ids=()) for community in index.all(Community)
            ]

        communities = find_communities(
            graph.entities, graph.relationships, self._settings.communities, document_of, former
        )
        index.replace(Community, communities)
        self._progress.finish("graph")
        await self._keep_asked(await self._summarize_and_ask(communities, graph))

    async def ask(self) -> None:
        """A question for each summary that is there, of communities that were made elsewhere."""
        index = self._index
        index.forget_mentions()
        entities = list(index.all(Entity))
        index.keep_passage_graph(entities, index.all(Relationship))
        communities, summaries = list(index.all(Community)), list(index.all(Summary))
        await self._keep_asked(await self._ask(communities, summaries, len(summaries), entities))

    async def _summarize_and_ask(
        self, communities: Sequence[Community], graph: Graph, known: Mapping[str, Summary] | None = None
    ) -> list[Question]:
        """The questions of the communities whose summaries are not `known`; one is asked as soon as its summary is
        there."""
        summaries: ItemStream[Summary] = ItemStream()
        total = sum(community.id not in (known or ()) for community in self._kraq.worth_a_summary(communities))

        looked_at = {community.id for community in communities}.difference(known or ())
        try:
            with self._only_current("ask", looked_at):  # a template may ask now in place of a model
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._summarize(communities, graph, summaries, known))
                    asking = group.create_task(self._ask(communities, summaries, total, graph.entities))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        return asking.result()

    async def _summarize(
        self,
        communities: Sequence[Community],
        graph: Graph,
        stream: ItemStream[Summary],
        known: Mapping[str, Summary] | None,
    ) -> None:
        written: dict[str, Summary] = {}
        async for summary in self._kraq.summaries(communities, graph, self._steps, known):
            written[summary.community_id] = summary
            stream.put(summary)
        stream.close()
        self._keep_summaries([written[c.id] for c in communities if c.id in written])
        self._progress.finish("summarize")

    def _keep_summaries(self, summaries: Sequence[Summary]) -> None:
        self._index.replace(Summary, summaries)
        self._index.results.prune("summarize", [summary.community_id for summary in summaries])

    async def _ask(
        self,
        communities: Sequence[Community],
        summaries: Iterable[Summary] | AsyncIterable[Summary],
        total: int,
        entities: Iterable[Entity],
    ) -> list[Question]:
        entities = list(entities)
        passages = IndexedPassages(self._index, self._parts.embedder)
        asked_by = self._kraq.asked_by(communities, passages, self._steps, entities)
        shown = asked_by.shown(summaries, {community.id for community in self._kraq.worth_a_summary(communities)})

        coming = self._kraq.questions(
            communities,
            shown,
            self._index.documents_of({chunk_id for each in communities for chunk_id in each.chunk_ids}),
            self._steps,
            total=total,
            names=self._kraq.central_names(entities),
            asked_by=asked_by,
        )

        questions = in_reading_order([question async for question in coming], [c.id for c in communities])
        self._progress.finish("ask")
        questions = await asyncio.to_thread(asked_by.with_evidence, questions)
        return await self._in_words(questions, communities, asked_by)

    async def _in_words(
        self, questions: list[Question], communities: Sequence[Community], asked_by: AskedBy
    ) -> list[Question]:
        with self._only_current("word", {each.community_id or "" for each in questions}):
            in_words = await self._kraq.in_words(questions, communities, asked_by, self._steps)
        self._progress.finish("word")
        return in_words

    async def _keep_asked(self, questions: list[Question]) -> None:
        with_question = {question.community_id for question in questions if question.community_id}
        for stage in ("ask", "word", "judge"):
            self._index.results.prune(stage, self._index.ids(Community))

        with self._only_current("ask random"):
            if self._parts.random_questions:
                chunks = list(self._index.all(Chunk))
                drawn = self._kraq.random_questions(
                    chunks,
                    len(questions),
                    self._steps,
                    seed=self._settings.communities.seed,
                    names=self._kraq.central_names_of_chunks(self._index.all(Entity)),
                )
                questions += in_reading_order([question async for question in drawn], ())
                self._progress.finish("ask random")
        await asyncio.to_thread(self._keep_questions, questions)
        threshold = await asyncio.to_thread(keep_threshold, self._index, self._parts.embedder)
        searched = {question.id for question, _ in self._searched()}
        if threshold is not None:
            await asyncio.to_thread(self._keep_held, threshold)
        await self._keep_judged(with_question)
        if self._settings.questions.fallback:
            await asyncio.to_thread(self._ask_instead, searched)
        self._complete()

    def _searched(self) -> Iterator[tuple[Question, list[Chunk]]]:
        """The questions whose evidence a search found, with it."""
        for question in self._index.questions(source="kraq", duplicates=True):
            if question.evidence_by == SEARCH:
                yield question, self._index.get(Chunk, question.evidence)

    def _keep_held(self, threshold: Threshold) -> None:
        """Of the evidence that a search found, what holds its question by the score below which kraq refuses one."""
        scorer = PassageScorer(self._index, self._parts.embedder)
        changed = []
        for question, chunks in self._searched():
            scores = scorer.of_each(question.text, chunks)
            held = tuple(chunk.id for chunk, score in zip(chunks, scores, strict=True) if score >= threshold.score)
            if held != question.evidence:
                changed.append(dataclasses.replace(question, evidence=held, evidence_by=SEARCH if held else ""))
        self._index.change(Question, set(), changed)

    async def _keep_judged(self, looked_at: Set[str]) -> None:
        """Of the evidence that a search found, what the role "judge" confirms, where it has a model."""
        with self._only_current("judge", looked_at):
            judged = await self._kraq.judged(list(self._searched()), self._steps)
        self._index.change(Question, set(), judged)
        self._progress.finish("judge")

    def _ask_instead(self, searched: Set[str]) -> None:
        """In place of a model's question of which no evidence stayed, of those with these ids: a template's, or the
        topic of the community."""
        index = self._index
        stored = {question.id: question for question in index.all(Question)}
        lost = [question for question in stored.values() if question.id in searched and not question.evidence]
        if not lost:
            return

        communities = index.get(Community, [question.community_id or "" for question in lost])
        entities = index.get(Entity, sorted({id for community in communities for id in community.entity_ids}))
        passages = IndexedPassages(index, self._parts.embedder)
        asked_by = self._kraq.asked_by(communities, passages, self._steps, entities)
        for question, community in zip(lost, communities, strict=True):
            stored[question.id] = asked_by.instead_of(question, community)
        index.change(Question, stored, self._marked(list(stored.values())))

    async def leave(self) -> None:
        """Complete an index of which nothing changed: its records stay, and a threshold that was lost is measured
        again."""
        if not has_threshold(self._index):
            await asyncio.to_thread(keep_threshold, self._index, self._parts.embedder)
        self._complete()

    def _complete(self) -> None:
        """Tell readers that the index is whole, and what it was made by."""
        if all(question.is_topic for question in self._index.all(Question)):
            self._parts.problems.append(NO_QUESTIONS)
        models = self._parts.models
        schemas = {**self._index.manifest.schemas, **models.schemas()}
        self._index.update_manifest(complete=True, settings=self._settings, models=models.names(), schemas=schemas)

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        self._index.replace(Question, self._marked(questions))

    def _marked(self, questions: Sequence[Question]) -> list[Question]:
        """The questions with their vectors stored, and duplicates marked among those of one source: random ones must
        not hide those of communities."""
        points = (Point(q.id, q.text, {"level": q.level, "source": q.source}) for q in questions)
        store, encode = self._index.question_vectors, self._parts.embedder.encode_queries
        sync_vectors(store, {question.id for question in questions}, points, encode, "embed questions", self._progress)
        marked: list[Question] = []
        for source in dict.fromkeys(question.source for question in questions):
            alike = [question for question in questions if question.source == source]
            vectors = store.vectors([question.id for question in alike])
            marked += mark_duplicates(alike, vectors, self._settings.questions.duplicate_similarity)
        return marked


def take_finished(parts: BuildParts) -> bool:
    """Whether an earlier build finished the index, with every result as this build would make it.

    The note of it is erased, since this build begins to change the index: should it stop half way, the next one must
    not take the index for finished.
    """
    results = parts.index.results
    if not results.settled(FINISHED):
        return False
    is_finished = parts.steps.is_settled(FINISHED, *parts.stages, settings=parts.fingerprint)
    results.unsettle(FINISHED)
    return is_finished


def settle_finished(parts: BuildParts) -> None:
    """Note for `take_finished` that all was done, unless something failed or questions were drawn by chance."""
    failed = any(parts.index.results.failures(stage) for stage, _, _ in parts.stages if stage != "extract")
    if not failed and not parts.random_questions:
        parts.steps.settle(FINISHED, *parts.stages, settings=parts.fingerprint)


def is_whole(parts: BuildParts) -> bool:
    """Whether the records of a finished index, of which nothing changed, are those that this build would make."""
    index = parts.index
    has_communities = parts.stable or index.results.settled(FOUND_ANEW) != ""
    return has_communities and index.question_vectors.count() == index.count(Question)


def note_communities(parts: BuildParts) -> None:
    """Note for `is_whole` how the communities that the index has now were found."""
    if parts.stable:
        parts.index.results.unsettle(FOUND_ANEW)
    else:
        parts.index.results.settle(FOUND_ANEW, "in the whole graph")
