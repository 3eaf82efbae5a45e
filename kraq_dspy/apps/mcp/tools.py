"""Answers an agent's calls from an opened index: asks, searches, lists questions, walks communities and the graph."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field
from rapidfuzz import process
from typing_extensions import TypedDict

from kraq_dspy._internal.display import shown_model
from kraq_dspy.apps.views import SNIPPET, AgentAnswer, AgentCommunity, AgentPassage, AgentQuestion, Named, shortened
from kraq_dspy.asset.store import states
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexStateError, UnknownRecordError
from kraq_dspy.records import Chunk, Community, Document, Entity, Question, Summary
from kraq_dspy.retrievers.combined import NearestQuestions
from kraq_dspy.retrievers.rerank import names_a_model
from kraq_dspy.workspace.choices import ProgramChoice, choose_program
from kraq_dspy.workspace.newest_state import NewestState
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS
from kraq_dspy.workspace.suggesting import STARTERS
from kraq_dspy.workspace.topics import topics
from kraq_dspy.workspace.workspace import Workspace

T = TypeVar("T")
Json = dict[str, Any]


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], int | None]:
    """`limit` items from `offset` on, and the offset of the next page; None for the last one."""
    end = offset + limit
    return list(items[offset:end]), end if end < len(items) else None


DEPTH = 50
"""Passages that a search ranks; its pages are parts of one ranking."""

AskedQuestion = Annotated[str, Field(min_length=1, max_length=4000, description="A question that stands alone.")]
Evidence = Annotated[int, Field(ge=0, le=20, description="Passages to return with the answer.")]
Offset = Annotated[int, Field(ge=0, description="`next_offset` of the page before; 0 for the first.")]
Program = Annotated[
    str,
    Field(
        description="How to answer; empty for this server's own choice. "
        + " ".join(f"{name}: {spec.help}" for name, spec in PROGRAMS.own.items())
    ),
]
Retriever = Annotated[
    str, Field(description=f"What ranks them; empty for the best one here. There are: {', '.join(RETRIEVERS.own)}.")
]


class EarlierTurn(TypedDict):
    """A question that was asked before, with its answer."""

    question: str
    answer: str


class IndexTools:
    """One method a tool: its docstring and its parameters' notes are what an agent reads. Safe for threads.

    `ask` runs the program of `choice` where the agent names none, and refuses what the documents do not answer, unless
    `no_refuse`. What they return becomes JSON.
    """

    def __init__(self, space: Workspace, choice: ProgramChoice, *, no_refuse: bool = False) -> None:
        self.choice = choice
        self.no_refuse = no_refuse
        self._newest = NewestState(space)
        self.looking_up: tuple[Callable[..., Json], ...] = (
            self.search, self.starters, self.questions_about, self.community, self.neighbours_of, self.read_document
        )  # fmt: skip
        """Those that ask no language model."""

    def move_on(self) -> None:
        """Take the newest state, and give the former ones back that no tool is reading."""
        if self._newest.move_on():
            states.give_back(self.space.path)

    def let_go(self) -> None:
        """Hold no state any more, in a process that ends at once."""
        self._newest.let_go()

    @property
    def space(self) -> Workspace:
        """The workspace stands on the last complete state of the index."""
        return self._newest.space

    @property
    def index(self) -> Index:
        return self.space.index

    async def ask(
        self,
        question: AskedQuestion,
        program: Program = "",
        evidence: Evidence = 3,
        history: Annotated[
            list[EarlierTurn] | None,
            Field(max_length=20, description="Questions that were asked before this one, with their answers."),
        ] = None,
        no_refuse: Annotated[bool, Field(description="Answer even if the documents seem not to.")] = False,
    ) -> Json:
        """Answer a question from the documents, with the passages that the answer rests on. Asks a language model, so
        it takes seconds or more; `search` and `questions_about` take milliseconds. `n_passages` were found for it, and
        `evidence` has the first; the documents answer `next_questions`, too. With `history` the question may refer to
        what was said ("Where was he born?"); `question` is then what was asked. `refused` says that the documents do
        not answer: then no model was asked, and they do answer `next_questions`."""
        if names_a_model(program):
            raise ConfigError(f"{program!r} would load a model that is not this server's. Name another program.")

        choice = choose_program(program) if program else self.choice
        answering = await asyncio.to_thread(self._newest.kept, program, lambda space: space.make_program(choice))

        text = _text(question, "question")
        anyway = no_refuse or self.no_refuse
        refuse = self.space.refuses and not anyway
        prediction = await self.space.aask(text, answering, history=history, refuse=refuse, anyway=anyway)

        hits = list(prediction.get("hits") or ())
        answer = AgentAnswer.of(
            prediction,
            question=prediction.get("standalone_question") or text,
            program=choice.spec.name,
            model=shown_model(self.space.models.name(choice.role)),
            evidence=[AgentPassage.of(hit) for hit in hits[:evidence]],
            n_passages=len(hits),
            next_questions=[each.text for each in prediction.get("next_questions") or ()],
            seconds=round(choice.seconds(prediction).get("wall", 0.0), 2),
        )
        return answer.to_json()

    def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=4000, description="A question or words to look for.")],
        limit: Annotated[int, Field(ge=1, le=20, description="Passages to return.")] = 5,
        offset: Offset = 0,
        retriever: Retriever = "",
        document_ids: Annotated[
            list[str] | None, Field(max_length=100, description="Only passages of these documents.")
        ] = None,
    ) -> Json:
        """Find passages, best first. No language model is asked, unless the retriever named rewrites the query.
        `total` counts what was found, not what there is. `answerable` is false where they seem not to answer the query,
        if it is a question; null where that cannot be told."""
        if names_a_model(retriever):
            raise ConfigError(f"{retriever!r} would load a model that is not this server's. Name another retriever.")

        filters = {"document_id": document_ids} if document_ids else None
        retrieve = self.space.retriever(retriever or None)
        hits = retrieve(_text(query, "query"), DEPTH, filters=filters)
        shown, next_offset = page(hits, offset, limit)

        return {
            "passages": [AgentPassage.of(hit).to_json() for hit in shown],
            "total": len(hits),
            "next_offset": next_offset,
            "answerable": self.space.answerability(query).is_answerable,
        }

    def questions_about(
        self,
        topic: Annotated[
            str, Field(max_length=4000, description="What they should be about; empty lists them, broadest first.")
        ] = "",
        limit: Annotated[int, Field(ge=1, le=50, description="Questions to return.")] = 10,
        offset: Offset = 0,
        level: Annotated[
            int | None, Field(ge=0, description="Only questions of this level; 0 is the broadest.")
        ] = None,
    ) -> Json:
        """List the questions that the documents answer: their table of contents. Each belongs to a community of
        entities, which `community` describes. `evidence` are the chunks that answer it (`read_document`), `share` how
        much of its community they are. Where there is a `topic`, it says what the community is about, and the question
        is an example. No language model is asked."""
        if not self.index.count(Question):
            self.index.require_documents()
            raise IndexStateError(
                "This index has no questions: it was imported, or its build is not complete. Use `search`; "
                "the index's owner makes questions with `kraq index`."
            )

        if not topic.strip():
            listed = list(self.index.questions(level, source="kraq"))
            listed.sort(key=lambda question: (question.level, -len(question.chunk_ids)))
            shown, next_offset = page(listed, offset, limit)
            questions = list(map(self._view, shown))
        else:
            filters: dict[str, Any] = {"source": "kraq"} | ({} if level is None else {"level": level})
            nearest = NearestQuestions(self.index, self.index.question_vectors, self.space.embedder, filters=filters)
            hits, next_offset = page(nearest(topic, offset + limit + 1), offset, limit)
            questions = [self._view(hit.question, hit.similarity) for hit in hits]
        return {"questions": [each.to_json() for each in questions], "next_offset": next_offset}

    def starters(
        self, count: Annotated[int, Field(ge=1, le=50, description="Questions to return.")] = STARTERS
    ) -> Json:
        """Get to know the documents: a dozen questions that they answer, and that cover most of them. No language
        model is asked."""
        return {"questions": [self._view(each.question).to_json() for each in self.space.starters(count)]}

    def community(
        self,
        community_id: Annotated[str, Field(description="From a question, a neighbour or another community.")],
        limit: Annotated[int, Field(ge=1, le=100, description="Children, entities and passages to return.")] = 20,
    ) -> Json:
        """Describe a community: what its entities have to do with each other, its question, narrower and broader
        communities, and the passages that it comes from: the first of `n_children`, `n_entities` and `n_passages`."""
        community = self._record(Community, community_id, "Ids come with `questions_about` and `neighbours_of`.")
        summary = self._summaries([community_id]).get(community_id)

        parent_id = community.parent_id
        questions = self.index.all(Question, community_id=community_id)
        entities = self.index.get(Entity, community.entity_ids[:limit])
        chunks = self.index.chunks_by_id(community.chunk_ids[:limit])
        findings = summary.findings if summary else ()

        view = AgentCommunity.of_record(
            community,
            title=summary.title if summary else "",
            summary=shortened(summary.text, 2 * SNIPPET) if summary else "",
            findings=[shortened(f"{each.summary}: {each.explanation}", 300) for each in findings],
            questions=[self._view(question) for question in questions if question.duplicate_of is None],
            parent=self._named([parent_id])[0] if parent_id else None,
            children=self._named(community.child_ids[:limit]),
            entities=list(map(Named.of_record, entities)),
            passages=[Named(id=chunk.id, name=chunk.title) for chunk in chunks],
        )
        return view.to_json()

    def neighbours_of(
        self,
        entity: Annotated[str, Field(min_length=1, description="The name of an entity, or its id.")],
        limit: Annotated[int, Field(ge=1, le=50, description="Neighbours to return.")] = 10,
        offset: Offset = 0,
    ) -> Json:
        """Walk the graph: what an entity is linked to, how, and in which passages; most often stated first.

        A `sentence` reads from the subject to the object, whichever of them the neighbour is. `others` have the same
        name; ask for one of them by its id."""
        centre, *others = self._entities(entity)
        links = self.space.graph.links([centre.id])
        shown, next_offset = page(sorted(links, key=lambda link: (-link.weight, link.id)), offset, limit)
        other_ids = [link.target_id if link.source_id == centre.id else link.source_id for link in shown]
        neighbours = []
        for link, other in zip(shown, self.index.get(Entity, other_ids), strict=True):
            subject, object = (centre, other) if link.source_id == centre.id else (other, centre)
            neighbours.append(
                {
                    "entity_id": other.id,
                    "name": other.name,
                    "sentence": f"{subject.name} {link.predicate} {object.name}",
                    "description": shortened(link.description, 300),
                    "weight": link.weight,
                    "chunk_ids": list(link.chunk_ids[:5]),
                }
            )
        return {
            "entity_id": centre.id,
            "name": centre.name,
            "type": centre.type,
            "description": shortened(centre.description),
            "community_id": self.space.graph.community_of(centre.id, self.index.deepest_level()),
            "neighbours": neighbours,
            "total": len(links),
            "next_offset": next_offset,
            "others": [Named.of_record(other).to_json() for other in others[:10]],
        }

    def read_document(
        self,
        document_id: Annotated[
            str,
            Field(min_length=1, description="A document's id, or a passage's `chunk_id`: then from where it begins."),
        ],
        offset: Annotated[int, Field(ge=0, description="Characters to leave out; `next_offset` goes on.")] = 0,
        length: Annotated[int, Field(ge=1, le=20_000, description="Characters to return.")] = 4000,
    ) -> Json:
        """Read a document, or go on reading where a passage begins: `text` is its characters from `offset` on."""
        start = offset
        try:
            (chunk,) = self.index.get(Chunk, [document_id])
        except UnknownRecordError:  # the id of a document, then
            pass
        else:
            start, document_id = chunk.start + offset, chunk.document_id
        document = self._record(Document, document_id, "Ids come with passages: see `search`.")
        text = document.text[start : start + length]
        end = start + len(text)
        return {
            "document_id": document.id,
            "title": document.title,
            "source": document.source,
            "text": text,
            "offset": start,
            "total_characters": len(document.text),
            "next_offset": end - (start - offset) if end < len(document.text) else None,
        }

    def _view(self, question: Question, similarity: float | None = None) -> AgentQuestion:
        topic_by_id = self._newest.kept(topics_of_questions, topics_of_questions)
        rounded = None if similarity is None else round(similarity, 3)
        return AgentQuestion.of(question, topic_by_id.get(question.id, ""), similarity=rounded)

    def _record(self, kind: Any, id: str, where: str) -> Any:
        try:
            (record,) = self.index.get(kind, [id])
        except UnknownRecordError as error:
            raise UnknownRecordError(f"There is no {kind.__name__.lower()} with the id {id!r:.80}. {where}") from error
        return record

    def _summaries(self, community_ids: Sequence[str]) -> dict[str, Summary]:
        """Give the summaries by community id; those that are too small for one have none."""
        present = set(self.index.ids(Summary))
        summaries = self.index.get(Summary, [id for id in community_ids if id in present])
        return {each.community_id: each for each in summaries}

    def _named(self, community_ids: Sequence[str]) -> list[Named]:
        summaries = self._summaries(community_ids)
        return [Named(id=id, name=summaries[id].title if id in summaries else "") for id in community_ids]

    def _entities(self, entity: str) -> list[Entity]:
        """Those of a name, most linked first, or the one with that id."""
        names = self._newest.kept(ids_by_name, ids_by_name)
        ids = names.get(entity.strip().casefold()) or [entity.strip()]
        try:
            return sorted(self.index.get(Entity, ids), key=lambda each: (-each.degree, each.id))
        except UnknownRecordError as error:
            near = self._names_near(entity, names)
            hint = f"Near to it: {', '.join(near)}." if near else "`search` finds passages by any word."
            raise UnknownRecordError(f"There is no entity named {entity!r:.80}. {hint}") from error

    def _names_near(self, entity: str, names: dict[str, list[str]]) -> list[str]:
        """Five of entities that share words with it, in any order, or are spelled alike; nearest first."""
        near = process.extract(entity.strip().casefold(), names.keys(), limit=5, score_cutoff=75)
        ids = dict.fromkeys(names[name][0] for name, _, _ in near)
        return [record.name for record in self.index.get(Entity, list(ids))]


def ids_by_name(space: Workspace) -> dict[str, list[str]]:
    """The entities of each of their names, in small letters."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for entity in space.index.all(Entity):
        for name in {name.casefold() for name in (entity.name, *entity.names)}:
            ids[name].append(entity.id)
    return dict(ids)


def topics_of_questions(space: Workspace) -> dict[str, str]:
    """What stands for the questions that templates asked about broad communities, by the question's id."""
    return topics(space.index, space.index.questions(source="kraq"))


def _text(value: str, what: str) -> str:
    """Raises ConfigError for one of spaces alone."""
    if not value.strip():
        raise ConfigError(f"The {what} is empty; expected some text.")
    return value
