"""Leads from chunks to a graph, its communities, their summaries and one question each (KRAQ paper, section 2)."""

import asyncio
import dataclasses
import logging
import random
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence

import dspy

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.step import instructions_of
from kraq_dspy.asset.corpus.tokens import exceeds_tokens, truncate_tokens
from kraq_dspy.asset.graph.build import Graph, ResolvedMentions, apply_descriptions
from kraq_dspy.asset.graph.candidates import (
    ACRONYM,
    ADDRESS,
    MergeCandidate,
    NameCount,
    NameGroup,
    grouped,
    propose_merges,
)
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.asset.graph.elements import GraphView, community_elements
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.resolve import Resolution, resolve_entities
from kraq_dspy.asset.graph.similar_names import meant_alike, merged_unasked, spelled_alike
from kraq_dspy.asset.graph.weighing import weak_phrases
from kraq_dspy.language.text import NOTHING_NAMED
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.asked_by import AskedBy, ListedPassages, Passages, Wording, each_of, worded
from kraq_dspy.programs.kraq.by_size import candidates, extractor, has_small_tuned_generator, is_small
from kraq_dspy.programs.kraq.describe import (
    AskQuestion,
    AskRandomQuestion,
    ConfirmSame,
    DescribeCommunity,
    DescribeEntity,
    shown_summary,
)
from kraq_dspy.programs.kraq.evidence import JudgeEvidence
from kraq_dspy.programs.kraq.question_text import mark_duplicates
from kraq_dspy.programs.kraq.wording import PutInWords, Stated
from kraq_dspy.records import JUDGED, PARSE, Chunk, Community, Entity, Extraction, Question, Summary, content_id
from kraq_dspy.settings import EMBEDDED, Settings
from kraq_dspy.state import SavableModule
from kraq_dspy.steps.direct import DirectSteps, Done, Item, OrderedItems, Steps

logger = logging.getLogger(__name__)

_ASKED_ALONE = (ACRONYM, ADDRESS)
"""Kinds of pairs that a model is asked about by default, and that are merged by its word alone."""
DESCRIBED = 60  # tokens of a description that go with a name which may be another's


class KRAQ(SavableModule):
    """The five stages of the KRAQ paper as one program.

    Args:
        settings: settings in place of the defaults.
        embedder: an encoder in place of the encoder of the settings.

    Call `kraq(chunks=...)` to run all stages in memory. You can also run one stage at a time: each stage takes
    `steps`, which maps a program over items in memory (`DirectSteps`) or over a store (`steps.kept`).

    The steps are attributes: `extract`, `confirm`, `describe`, `summarize`, `ask` and `ask_random`. With a model for
    the role "asker", there is also `word`; with a model for the role "judge", also `judge`. You can optimize, replace
    and save each step. `load` reads a file of `kraq optimize`.

    >>> from kraq_dspy import Corpus, Workspace
    >>> chunks = Corpus.from_texts(["Ada Lovelace met Charles Babbage in London."]).chunks
    >>> with Workspace.open("ada.kraq"):  # whose embedded model is asked
    ...     sorted(entity.name for entity in KRAQ()(chunks=chunks).graph.entities)
    ['Ada Lovelace', 'Charles Babbage', 'London']
    """

    def __init__(self, settings: Settings | None = None, embedder: Embedder | None = None) -> None:
        """Keep the steps. Without `embedder`, names are compared by spelling alone and duplicate
        questions are not looked for."""
        super().__init__()
        self.settings = settings or Settings()
        self.embedder = embedder
        self.extract = extractor(self.settings)
        self.confirm = ConfirmSame()
        self.describe = DescribeEntity()
        self.summarize = DescribeCommunity(findings=not is_small(self.settings.role("summarizer").model))
        self.ask = AskQuestion(candidates(self.settings))
        self.ask_random = AskRandomQuestion(candidates(self.settings))
        self.word = PutInWords() if "asker" in self.settings.roles else None
        self.judge = JudgeEvidence() if "judge" in self.settings.roles else None

    async def aforward(self, chunks: Sequence[Chunk]) -> dspy.Prediction:
        """`extractions`, `graph`, `communities`, `summaries` and `questions` of the chunks."""
        steps = DirectSteps(self.settings.run.concurrency)
        order = {chunk.id: number for number, chunk in enumerate(chunks)}
        extractions = [extraction async for extraction in self.extractions(chunks, steps, total=len(chunks))]
        extractions.sort(key=lambda extraction: order[extraction.chunk_id])

        graph = await self.graph(extractions, steps)
        document_of = {chunk.id: chunk.document_id for chunk in chunks}
        communities = find_communities(graph.entities, graph.relationships, self.settings.communities, document_of)
        summaries = {s.community_id: s async for s in self.summaries(communities, graph, steps)}

        names = self.central_names(graph.entities)
        asked_by = self.asked_by(communities, ListedPassages(chunks), steps, graph.entities)
        shown = asked_by.shown(summaries.values(), set(summaries))
        asked_questions = self.questions(communities, shown, document_of, steps, names=names, asked_by=asked_by)
        questions = asked_by.with_evidence([question async for question in asked_questions])
        questions = await self.in_words(questions, communities, asked_by, steps)

        return dspy.Prediction(
            extractions=extractions,
            graph=graph,
            communities=communities,
            summaries=[summaries[community.id] for community in communities if community.id in summaries],
            questions=self.without_repeats(in_reading_order(questions, [community.id for community in communities])),
        )

    def forward(self, chunks: Sequence[Chunk]) -> dspy.Prediction:
        """Do as `aforward` does, in an event loop of its own: the stages hand items on to each
        other."""
        return run_coroutine(self.aforward(chunks))

    async def extractions(
        self, chunks: Iterable[Chunk], steps: Steps, *, total: int | None = None
    ) -> AsyncIterator[Extraction]:
        """Stage 1, as they are done."""
        items = (
            Item(
                chunk.id,
                {"passage": chunk.passage},
                name=f"passage {chunk.position + 1} of {chunk.title or chunk.document_id!r}",
                document=chunk.document_id,
            )
            for chunk in chunks
        )

        ungrounded = 0
        async for done in steps.map("extract", "extractor", self.extract, items, total=total):
            prediction = done.prediction
            ungrounded += prediction.ungrounded
            yield Extraction(done.id, prediction.entities, prediction.relationships, prediction.claims)

        if ungrounded:
            logger.info("extract: dropped %d elements about names that their passages do not have", ungrounded)

    async def graph(self, extractions: Iterable[Extraction], steps: Steps) -> Graph:
        """Stage 2: one node per thing, one description per node.

        Acronyms and forms of address ("Mr. Holmes") are put to the model with `settings.resolve.acronyms`, similar
        names with `settings.resolve.confirm`, unless it is the embedded one. Descriptions of an entity (of a
        relationship with `settings.resolve.relationships`) are merged by the model only if together they exceed
        `settings.resolve.description_tokens`.
        """
        resolved = await self.resolved(Mentions.of(extractions), steps)
        graph = resolved.graph()
        del resolved  # gives back what it holds before a model is asked
        return await self.described(graph, steps)

    async def resolved(self, mentions: Mentions, steps: Steps) -> ResolvedMentions:
        """The first half of stage 2: what the extractions say, each name known for the thing that it means; phrases
        that name nothing are left out (`weak_phrases`)."""
        mentions = mentions.without(weak_phrases(mentions))
        return ResolvedMentions(mentions, await self._resolution(mentions, steps))

    async def described(self, graph: Graph, steps: Steps) -> Graph:
        """The second half of stage 2: the graph with one description for each entity of which too much is said, and for
        each relationship if that is set."""
        settings = self.settings.resolve
        described = [(entity.id, entity.name, entity.description) for entity in graph.entities]
        if settings.relationships:
            names = {entity.id: entity.name for entity in graph.entities}
            described += [
                (link.id, f"{names[link.source_id]} | {link.predicate} | {names[link.target_id]}", link.description)
                for link in graph.relationships
            ]

        long = [
            Item(id, {"name": name, "descriptions": graph.descriptions[id]})
            for id, name, text in described
            if id in graph.descriptions and exceeds_tokens(text, settings.description_tokens)
        ]
        merged = {
            done.id: done.prediction.description
            async for done in steps.map("describe", "summarizer", self.describe, long, total=len(long))
        }
        return apply_descriptions(graph, merged)

    async def _resolution(self, mentions: Mentions, steps: Steps) -> Resolution:
        groups = grouped(mentions.names())
        candidates = [
            *propose_merges(groups, mentions.introduced_acronyms()),
            *(await asyncio.to_thread(self._similar_names, groups)),
        ]
        accepted = [candidate for candidate in candidates if candidate.certain]
        doubtful = [candidate for candidate in candidates if not candidate.certain]
        if not self.settings.resolve.confirm:
            accepted += merged_unasked(
                [candidate for candidate in doubtful if candidate.method not in _ASKED_ALONE], groups
            )

        to_confirm = self._to_confirm(doubtful)
        if to_confirm and steps.model("summarizer", self.confirm) not in ("", EMBEDDED):
            accepted += await self._confirmed(to_confirm, mentions, steps)
        return resolve_entities(groups, accepted)

    def _similar_names(self, groups: Mapping[str, NameGroup]) -> list[MergeCandidate]:
        """Names that are alike as the settings say."""
        settings = self.settings.resolve
        if settings.alike == "none":
            return []
        similar = list(spelled_alike(groups, settings.similarity))
        if settings.alike == "meaning" and self.embedder is not None:
            known = {(candidate.first, candidate.second) for candidate in similar}
            meant = meant_alike(groups, settings.similarity, self.embedder)
            similar += [candidate for candidate in meant if (candidate.first, candidate.second) not in known]
        return similar

    def _to_confirm(self, doubtful: Iterable[MergeCandidate]) -> list[MergeCandidate]:
        """Return those that a model is asked about, as the settings say, each pair once."""
        settings = self.settings.resolve
        pairs: dict[tuple[str, str], MergeCandidate] = {}
        for candidate in doubtful:
            if settings.acronyms if candidate.method in _ASKED_ALONE else settings.confirm:
                pairs.setdefault((candidate.first, candidate.second), candidate)
        return list(pairs.values())

    async def _confirmed(
        self, candidates: Sequence[MergeCandidate], mentions: Mentions, steps: Steps
    ) -> list[MergeCandidate]:
        """Return those of which the model says that they are one thing."""
        ends = {end for pair in candidates for end in (pair.first, pair.second)}
        descriptions = mentions.descriptions(ends)
        shown = {
            name.name: _described(name, descriptions.get(name.name, ""))
            for name in mentions.names()
            if name.name in ends
        }
        pairs = {content_id("pair", pair.first, pair.second): pair for pair in candidates}
        items = (Item(id, {"first": shown[pair.first], "second": shown[pair.second]}) for id, pair in pairs.items())

        confirmed = []
        async for done in steps.map("confirm", "summarizer", self.confirm, items, total=len(pairs)):
            if done.prediction.same:
                confirmed.append(pairs[done.id])
        return confirmed

    def worth_a_summary(self, communities: Sequence[Community]) -> list[Community]:
        """Return those of at least `settings.summaries.min_entities` entities, linked ones among
        them."""
        return [each for each in communities if each.is_worth_a_summary(self.settings.summaries.min_entities)]

    async def summaries(
        self, communities: Sequence[Community], graph: Graph, steps: Steps, known: Mapping[str, Summary] | None = None
    ) -> AsyncIterator[Summary]:
        """Stage 4: a community that is too large to be shown is shown by its parts' summaries, so it waits for these.

        Communities that are not `worth_a_summary` are passed over, and those whose summaries are `known`.
        """
        view = GraphView.of(graph.entities, graph.relationships, graph.claims)
        by_id = {community.id: community for community in communities}
        written: dict[str, Summary] = dict(known or {})
        large = [community for community in self.worth_a_summary(communities) if community.id not in written]

        def item(community_id: str) -> Item:
            limit, community = self.settings.community_tokens, by_id[community_id]
            return Item(community_id, {"elements": community_elements(community, view, limit, written.get, by_id.get)})

        deepest_first = sorted(large, key=lambda community: -community.level)
        items = OrderedItems({community.id: community.child_ids for community in deepest_first}, item)
        async for done in steps.map("summarize", "summarizer", self.summarize, items, total=len(large)):
            answer = done.prediction
            summary = Summary(done.id, answer.title, answer.summary, answer.findings, done.model)
            written[done.id] = summary
            yield summary

    def asked_by(
        self, communities: Sequence[Community], passages: Passages, steps: Steps, entities: Iterable[Entity] = ()
    ) -> AskedBy:
        """Tell who asks about the communities, by the settings and the generator that `steps` would
        ask."""
        return AskedBy(
            communities,
            passages,
            self.settings.questions,
            generator=steps.model("generator", self.ask),
            is_small=self.ask.candidates > 1 or has_small_tuned_generator(self.settings),
            entities=entities,
        )

    async def questions(
        self,
        communities: Sequence[Community],
        summaries: Iterable[Summary] | AsyncIterable[Summary],
        document_of: Mapping[str, str],
        steps: Steps,
        *,
        total: int | None = None,
        names: Callable[[Community], tuple[str, ...]] = lambda community: (),
        asked_by: AskedBy,
    ) -> AsyncIterator[Question]:
        """Stage 5: one question for each summary; `document_of` maps chunk ids to document ids, `names` a community to
        its central names.

        `asked_by` says about which communities the generator is asked, and asks by templates itself: about the others,
        where the generator wrote nothing usable, and where its call failed. A template's question has the embedded
        model's name.
        """
        by_id = {community.id: community for community in communities}
        instructions = instructions_of(self.ask)
        shown: dict[str, str] = {}  # what the generator is asked about, until it has answered
        of_templates: list[Question] = []

        def question(community: Community, text: str, model: str) -> Question:
            return _question_about(community, text, model, document_of, names(community))

        async def items() -> AsyncIterator[Item]:
            async for summary in each_of(summaries):
                text, community = shown_summary(summary.title, summary.text), by_id[summary.community_id]
                asks_model = asked_by.asks_model(community, text)
                instead = None if asks_model else asked_by.template(community, text)
                if instead is not None:
                    of_templates.append(question(community, instead.text, instead.model))
                elif asked_by.policy != "templates":
                    shown[community.id] = text
                    yield Item(community.id, {"summary": text})

        async for done in steps.map("ask", "generator", self.ask, items(), total=total):
            community, summary = by_id[done.id], shown.pop(done.id)
            wording = Wording(done.prediction.question, done.model)
            if not asked_by.is_usable(wording.text, instructions):
                wording = asked_by.template(community, summary) or wording
            if wording == Wording(NOTHING_NAMED, EMBEDDED):
                continue  # nothing is asked if nothing is known
            yield question(community, wording.text, wording.model)

        for template_question in of_templates:
            yield template_question
        for community_id, summary in shown.items():  # whose calls failed
            instead = asked_by.template(by_id[community_id], summary)
            if instead is not None:
                yield question(by_id[community_id], instead.text, instead.model)

    async def in_words(
        self, questions: Sequence[Question], communities: Sequence[Community], asked_by: AskedBy, steps: Steps
    ) -> list[Question]:
        """The questions, those that the parse made of a statement in the words of the role "asker" where it has a model
        and these have no fault; each has the name of who worded it."""
        if self.word is None:
            return list(questions)
        by_id = {community.id: community for community in communities}
        stated: dict[str, Stated] = {}
        for question in questions:
            community = by_id.get(question.community_id or "") if question.model == PARSE else None
            statement = asked_by.stated(community, question.text) if community else None
            if community is not None and statement is not None:
                stated[community.id] = statement

        items = [Item(id, statement.inputs()) for id, statement in stated.items()]
        in_words: dict[str, Done] = {}
        async for done in steps.map("word", "asker", self.word, items, total=len(items)):
            if not done.prediction.fault:
                in_words[done.id] = done
        return [
            worded(question, reply.prediction.question, reply.model)
            if (reply := in_words.get(question.community_id or ""))
            else question
            for question in questions
        ]

    async def judged(self, searched: Iterable[tuple[Question, Sequence[Chunk]]], steps: Steps) -> list[Question]:
        """Questions of communities, and passages that a search found for each, with those that the model of the role
        "judge" confirms; none where that is the embedded one. A question whose judgement failed is left out."""
        if self.judge is None or steps.model("judge", self.judge) in ("", EMBEDDED):
            return []
        found = {question.community_id or "": (question, chunks) for question, chunks in searched}
        items = [
            Item(id, {"question": question.text, "passages": [chunk.passage for chunk in chunks]})
            for id, (question, chunks) in found.items()
        ]
        judged = []
        async for done in steps.map("judge", "judge", self.judge, items, total=len(items)):
            question, chunks = found[done.id]
            answering = zip(chunks, done.prediction.answering, strict=True)
            evidence = tuple(chunk.id for chunk, answers in answering if answers)
            judged.append(dataclasses.replace(question, evidence=evidence, evidence_by=JUDGED if evidence else ""))
        return judged

    def central_names(self, entities: Iterable[Entity]) -> Callable[[Community], tuple[str, ...]]:
        """The names of a community's `settings.questions.names` entities with the most relationships."""
        known = {entity.id: (-entity.degree, entity.name) for entity in entities}
        count = self.settings.questions.names

        def names(community: Community) -> tuple[str, ...]:
            members = sorted(known[entity_id] for entity_id in community.entity_ids if entity_id in known)
            return tuple(name for _, name in members[:count])

        return names

    def central_names_of_chunks(self, entities: Iterable[Entity]) -> Callable[[Sequence[Chunk]], tuple[str, ...]]:
        """Do as `central_names` does, for the entities that some chunks name."""
        named_in: dict[str, list[tuple[int, str]]] = {}  # the most linked names come first when sorted
        for entity in entities:
            for chunk_id in entity.chunk_ids:
                named_in.setdefault(chunk_id, []).append((-entity.degree, entity.name))
        count = self.settings.questions.names

        def names(chunks: Sequence[Chunk]) -> tuple[str, ...]:
            named: set[tuple[int, str]] = set()
            for chunk in chunks:
                named.update(named_in.get(chunk.id, ()))
            return tuple(name for _, name in sorted(named)[:count])

        return names

    async def random_questions(
        self,
        chunks: Sequence[Chunk],
        count: int,
        steps: Steps,
        *,
        seed: int = 0,
        names: Callable[[Sequence[Chunk]], tuple[str, ...]] = lambda chunks: (),
    ) -> AsyncIterator[Question]:
        """The papers' Random baseline: `count` questions, each about `settings.questions.random_least` to `random_most`
        chunks drawn uniformly without repeats. `names` maps these chunks to their central names."""
        chance, settings = random.Random(seed), self.settings.questions
        sizes = (chance.randint(settings.random_least, settings.random_most) for _ in range(count))
        draws = [chance.sample(chunks, min(size, len(chunks))) for size in sizes]
        items = (Item(str(number), {"passages": [c.passage for c in draw]}) for number, draw in enumerate(draws))

        async for done in steps.map("ask random", "generator", self.ask_random, items, total=count):
            draw = draws[int(done.id)]
            yield Question(
                id=content_id("random question", done.id, done.prediction.question),
                text=done.prediction.question,
                source="random",
                community_id=None,
                level=-1,
                chunk_ids=tuple(chunk.id for chunk in draw),
                document_ids=tuple(dict.fromkeys(chunk.document_id for chunk in draw)),
                model=done.model,
                names=names(draw),
            )

    def without_repeats(self, questions: Sequence[Question]) -> list[Question]:
        """The questions with `duplicate_of` filled in; unchanged where the program has no embedder."""
        if self.embedder is None or not questions:
            return list(questions)
        vectors = self.embedder.encode_queries([question.text for question in questions])
        return mark_duplicates(questions, vectors, self.settings.questions.duplicate_similarity)


def in_reading_order(questions: Iterable[Question], community_ids: Iterable[str]) -> list[Question]:
    """Questions in the order of their communities (broadest first); those without a community last, by id."""
    place = {community_id: number for number, community_id in enumerate(community_ids)}
    return sorted(questions, key=lambda q: (place.get(q.community_id or "", len(place)), q.id))


def _described(name: NameCount, description: str) -> str:
    """ "Name (type): description", as far as they are known."""
    kind = f" ({name.type})" if name.type else ""
    text = f": {truncate_tokens(' '.join(description.split()), DESCRIBED)}" if description else ""
    return f"{name.name}{kind}{text}"


def _question_about(
    community: Community,
    text: str,
    model: str,
    document_of: Mapping[str, str],
    names: tuple[str, ...],
) -> Question:
    """The record of a question about a community, which leads to its passages and documents."""
    documents = (document_of.get(chunk_id) for chunk_id in community.chunk_ids)
    return Question(
        id=content_id("question", community.id, text),
        text=text,
        source="kraq",
        community_id=community.id,
        level=community.level,
        chunk_ids=community.chunk_ids,
        document_ids=tuple(dict.fromkeys(id for id in documents if id is not None)),
        model=model,
        names=names,
    )
