"""Decides who asks about each community: the generator, a template, or both (`[questions] asked_by`).

Policies:

- "model": the generator makes a question of the summary of each community: Q = f(R), KRAQ paper 2.2. If it is not
  usable, the generator is asked once more, and then a template. A small generator sees the most central passage of a
  community instead, also of one without a summary, and its question must say nothing that a passage of the community
  does not; otherwise the template's replaces it, or nothing where there is no summary.
- "mixed": a heading that announces a question is what people look for: it is asked about, by one community alone. A
  small tuned generator writes questions for such headings, and otherwise only if no template knows what to ask. Any
  other generator writes one for every community, for a narrow one from its heading and its text. If a community has a
  heading, and the generator's question finds no passage of the community, the template's takes its place.
- "templates": no model is asked. A community in which a template finds nothing to ask about has no question.
- "auto": "model" if a generator is named, otherwise "mixed".
"""

import dataclasses
import math
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from kraq_dspy.embedded_model import analyst, has_embedded_model, question_writer
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.language.text import NOTHING_NAMED, clipped, content_words, parted, words
from kraq_dspy.language.told import language_of_most
from kraq_dspy.programs.kraq.by_size import is_small as is_small_model
from kraq_dspy.programs.kraq.evidence import may_state, mentioning, naming, stating
from kraq_dspy.programs.kraq.question_text import asks_of_headline, asks_of_something, stands_alone
from kraq_dspy.programs.kraq.representative import Representative, representatives
from kraq_dspy.programs.kraq.wording import Stated, fault_in_passage, placed_in, stated_in
from kraq_dspy.records import (
    MENTIONS,
    PARSE,
    SEARCH,
    STATEMENTS,
    TOPIC,
    Chunk,
    Community,
    Entity,
    Question,
    Summary,
    content_id,
)
from kraq_dspy.settings import EMBEDDED, QuestionSettings

MOST_READ = 40  # passages of a community or an index, evenly drawn, in which headings are looked for
NARROW = 3  # passages of a community that a model is asked about by a heading and its text, not by their summary
NEAREST = 10  # passages of an index among which a model's question must have one of its own
DEFINING_READ = 200  # passages of an index, evenly drawn, in which definitions are looked for
DEFINING = 0.04  # share of passages that define something, from which a small model asks well
ANNOUNCING = 0.25  # share of communities whose headings announce a question, from which it does as well
BROAD = 8  # passages of a community from which on a heading or a definition is a detail of it
LONGEST_TOPIC = 12  # words
NAMES_OF_TOPIC = 3  # of a community whose question no passage answers

T = TypeVar("T")


class Passages(Protocol):
    """The passages that templates read: those of an index, or of a list."""

    def ids(self) -> Sequence[str]:
        """Give the ids of all passages, in reading order."""

    def get(self, ids: Sequence[str]) -> Sequence[Chunk]:
        """The passages of these ids."""

    def analyses(self, ids: Sequence[str]) -> Mapping[str, Analysis]:
        """What the parser says of those of the passages that are in English, by their ids."""

    def nearest(self, questions: Sequence[str], count: int) -> list[list[str]]:
        """Give for each question the ids of the passages nearest to it; empty lists if nothing
        is searched."""

    def by_words(self, question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks by their words, best first."""


class ListedPassages:
    """Passages in memory, which are not searched.

    >>> ListedPassages([]).ids()
    []
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = {chunk.id: chunk for chunk in chunks}

    def ids(self) -> Sequence[str]:
        return list(self._chunks)

    def get(self, ids: Sequence[str]) -> Sequence[Chunk]:
        return [self._chunks[id] for id in ids]

    def analyses(self, ids: Sequence[str]) -> Mapping[str, Analysis]:
        read = {id: analyst().analysis(self._chunks[id].passage) for id in ids}
        return {id: analysis for id, analysis in read.items() if analysis is not None}

    def nearest(self, questions: Sequence[str], count: int) -> list[list[str]]:
        return [[] for _ in questions]

    def by_words(self, question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        telling = set(content_words(question))
        return sorted(chunks, key=lambda chunk: -len(telling.intersection(content_words(chunk.passage))))


def policy_of(asked_by: str, generator: str) -> str:
    """Return what `asked_by` means where the generator's model has this name; "" is no model.

    >>> policy_of("auto", "openai/gpt-4o-mini"), policy_of("auto", EMBEDDED), policy_of("templates", EMBEDDED)
    ('model', 'mixed', 'templates')
    """
    if asked_by != "auto":
        return asked_by
    return "mixed" if generator in ("", EMBEDDED) else "model"


def asks_generator(asked_by: str, generator: str) -> bool:
    """Whether the model of this name is asked about communities.

    The embedded model sees only the summary, and asks less well than a template, which sees the passages: it is asked
    under the policy "model" alone.

    >>> asks_generator("auto", "openai/x"), asks_generator("auto", EMBEDDED), asks_generator("model", EMBEDDED)
    (True, False, True)
    """
    return asked_by == "model" or (asked_by != "templates" and generator != EMBEDDED)


@dataclass(frozen=True, slots=True)
class Wording:
    """What stands for a community, and who worded it: `EMBEDDED` for a template, `PARSE` or `TOPIC`."""

    text: str
    model: str


WITHOUT_MODEL = frozenset((EMBEDDED, PARSE, TOPIC))
"""Who asks where no model does."""


class AskedBy:
    """How the questions of some communities come about, under one policy.

    `is_small` says that the generator is a small tuned model, which the policy "mixed" asks about
    less. Without `questions.fallback` the model sees only the summaries, and kraq keeps what it
    wrote; a template asks only if it wrote nothing.

    >>> AskedBy([], ListedPassages([]), QuestionSettings(), generator=EMBEDDED).policy
    'mixed'
    """

    def __init__(
        self,
        communities: Sequence[Community],
        passages: Passages,
        questions: QuestionSettings,
        *,
        generator: str,
        is_small: bool = False,
        entities: Iterable[Entity] = (),
    ) -> None:
        self.policy = policy_of(questions.asked_by, generator)
        self._asks_generator = asks_generator(questions.asked_by, generator)
        self._communities, self._source = communities, passages
        self._fallback = questions.fallback
        self._is_mixed = questions.fallback and self.policy == "mixed"
        self._is_small = is_small and self._is_mixed
        self._is_checked = questions.fallback and self.policy == "model" and is_small_model(generator)

        ranked = sorted(communities, key=_broadest_first)
        self._broadest = {community.id for community in ranked[: questions.broadest]}

        asks_of_headings = self._is_mixed or self.policy == "templates"
        self._headed = question_writer().headings_asked(ranked, self._read, self._subject) if asks_of_headings else {}
        self._asked_of = {id: Wording(heading.question, EMBEDDED) for id, heading in self._headed.items()}
        self._entities = {entity.id: entity for entity in entities}
        # A tuned model has learned from summaries.
        self._central = self._central_passages(ranked if self._is_checked and not is_small else ())
        self._titles: dict[str, str] = {}  # of the passages that were shown, by community
        self._unsummarized: set[str] = set()  # communities that nothing is asked about but what a model asks

    async def shown(
        self, summaries: Iterable[Summary] | AsyncIterable[Summary], summarized: AbstractSet[str]
    ) -> AsyncIterator[Summary]:
        """Yield what is asked about: the summaries as they are, under the policy "model".

        Otherwise headings and their texts in place of the summaries of narrow communities (a small model gets lost in
        summaries of much), and of communities that are not among the ids of the `summarized`. A small model that asks
        alone sees a passage of each.
        """
        by_id = {community.id: community for community in self._communities}
        self._unsummarized = (self._central.keys() & self._broadest) - summarized
        async for summary in each_of(summaries):
            id = summary.community_id
            if self._is_checked:  # a template takes the place of a question that no passage answers
                self.template(by_id[id], f"{summary.title}\n{summary.text}")
            if id in self._central:
                summary = self._passage_of(id)
            heading = self._headed.get(id)
            if heading and (self._is_small or len(by_id[id].chunk_ids) <= NARROW):
                summary = dataclasses.replace(summary, title=heading.heading, text=heading.text)
            yield summary

        for id, heading in self._headed.items():
            if id not in summarized:
                yield Summary(id, heading.heading, heading.text, (), EMBEDDED)
        for id in sorted(self._unsummarized):
            yield self._passage_of(id)

    def _passage_of(self, community_id: str) -> Summary:
        (chunk,) = self._source.get([self._central[community_id]])
        self._titles[community_id] = chunk.title
        return Summary(community_id, "", chunk.passage, (), EMBEDDED)

    def _central_passages(self, ranked: Sequence[Community]) -> dict[str, str]:
        """The id of the passage that names most of each community, its connected names above all, among those that no
        broader community has; by the community's id."""
        chosen: dict[str, str] = {}  # the community by its passage
        for community in ranked:
            weights = Counter[str]()
            for member in self._members(community):
                weights.update(dict.fromkeys(member.chunk_ids, 1 + member.degree))
            if free := [id for id in community.chunk_ids if id not in chosen]:
                chosen[max(free, key=weights.__getitem__)] = community.id
        return {community_id: id for id, community_id in chosen.items()}

    def _members(self, community: Community) -> list[Entity]:
        return [self._entities[id] for id in community.entity_ids if id in self._entities]

    def asks_model(self, community: Community, summary: str) -> bool:
        """Whether the model is asked.

        A small one is right less often than a template that knows what to ask, and hardly ever about texts that
        neither say what things are nor have headings which announce questions (news, abstracts, licences).
        """
        if not self._asks_generator or community.id not in self._broadest:
            return False
        if not self._is_small or community.id in self._headed:
            return True
        if not self._suits_a_small_model:
            return False
        wording = self.template(community, summary)
        return wording is None or wording.model == TOPIC

    def template(self, community: Community, summary: str) -> Wording | None:
        """What is asked about the community without a model: after a heading of its passages or a definition in them,
        of a statement that its parse turns into a question, and else its topic, which asks nothing. None where the
        summary has no word, and where no embedded model is installed."""
        if not words(summary) or not has_embedded_model() or community.id in self._unsummarized:
            return None
        if community.id not in self._asked_of:
            self._asked_of[community.id] = self._without_model(community, summary)
        return self._asked_of[community.id]

    def _without_model(self, community: Community, summary: str) -> Wording:
        is_broad = bool(community.child_ids) or len(community.chunk_ids) >= BROAD
        if is_broad and (of_statement := self._asked_of_statements.get(community.id)):
            return Wording(of_statement.question, PARSE)

        passages = self._read(community.chunk_ids)
        text = summary
        if self.policy == "model":  # whose summary may say what no passage does
            text = " ".join(" ".join(parted(passage)[1].split()) for passage in passages)

        defined = question_writer().question_about(text, passages, self._subject, language_of_corpus=self._language)
        if defined == NOTHING_NAMED or not stands_alone(defined, ""):
            defined = ""
        if asks_of_something(defined) and not is_broad and not asks_of_headline(defined):
            return Wording(defined, EMBEDDED)
        if of_statement := self._asked_of_statements.get(community.id):
            return Wording(of_statement.question, PARSE)
        if asks_of_something(defined):
            return Wording(defined, EMBEDDED)
        title = summary.strip().partition("\n")[0]
        return Wording(clipped(title, LONGEST_TOPIC), TOPIC)

    @cached_property
    def _asked_of_statements(self) -> dict[str, Representative]:
        """The question that stands for each community among those that its statements answer, by the community's id.

        The narrowest choose first. A community takes what none below it has, if its statements answer more than one.
        It looks at no others: what is not in it does not change its question, so a small change asks few again.
        """
        chosen: dict[str, Representative] = {}
        taken: dict[str, frozenset[str]] = {}
        for community in sorted(self._communities, key=_broadest_first, reverse=True):
            below = frozenset().union(*(taken.get(id, ()) for id in community.child_ids))
            members = self._members(community)
            weight_of_name = {name.casefold(): 1.0 + member.degree for member in members for name in member.names}
            chunk_ids = evenly(community.chunk_ids, MOST_READ)
            possible = representatives(self._source.analyses(chunk_ids), weight_of_name)
            possible.sort(key=lambda each: each.question in below)
            best = next((each for each in possible if stands_alone(each.question, "")), None)
            taken[community.id] = below
            if best is not None:
                chosen[community.id] = best
                taken[community.id] |= {best.question}
        return chosen

    def is_usable(self, question: str, instructions: str) -> bool:
        """Whether the model's question stays."""
        keeps_what_is_written = not self._fallback and bool(question.strip())
        return keeps_what_is_written or stands_alone(question, instructions)

    def with_evidence(self, questions: Sequence[Question]) -> list[Question]:
        """Return the questions with the passages of their groups that answer them.

        Under the policy "mixed", a model's question names the index's subject, as the templates do, and must lead to
        one of its group's passages: if none is among the nearest of the index, the template's question replaces it. It
        replaces a small model's, too, if each of these lacks a telling word of the question; where it is asked alone,
        its question that names nothing has the title of its passage before it.
        """
        placed_questions = [
            question if question.model in WITHOUT_MODEL else self._placed(question) for question in questions
        ]
        of_model = [question for question in placed_questions if question.model not in WITHOUT_MODEL]
        nearest = self._source.nearest([question.text for question in of_model], NEAREST)
        nearest_of = {question.id: ids for question, ids in zip(of_model, nearest, strict=True)}

        answered = []
        for question in placed_questions:
            near = nearest_of.get(question.id, [])
            found = [id for id in near if id in question.chunk_ids]
            instead = self._asked_of.get(_of(question))
            if self._is_checked and question.model not in WITHOUT_MODEL:
                found = self._saying(question.text, found if near else question.chunk_ids)
                if not found and _of(question) in self._unsummarized:
                    continue
            elif not (self._is_mixed and near) or (instead and instead.model == TOPIC):
                instead = None
            if instead and not found:
                question = worded(question, instead.text, instead.model)
            answered.append(self._answered(question, found))
        return answered

    def _placed(self, question: Question) -> Question:
        if self._is_mixed:
            text = question_writer().placed(question.text, self._subject)
        else:
            text = placed_in(question.text, self._titles.get(_of(question), ""))
        return worded(question, text, question.model)

    def instead_of(self, question: Question, community: Community) -> Question:
        """What is asked in place of a question that no passage of the community answers: a template's, with its
        evidence, or the topic."""
        wording = self.template(community, ", ".join(question.names[:NAMES_OF_TOPIC]))
        return self._answered(worded(question, wording.text, wording.model), ()) if wording else question

    def _answered(self, question: Question, found: Sequence[str]) -> Question:
        """The question with its evidence, or the topic where no passage answers a question that no model asked. `found`
        are passages of its group that a search for a model's found."""
        if question.is_topic:
            return question
        if question.model not in WITHOUT_MODEL and found:
            return _with_evidence(question, naming(question.text, self._source.get(found)), SEARCH)

        group = self._source.get(question.chunk_ids)
        asked = self._asked_of_statements.get(_of(question)) if question.model == PARSE else None
        if asked is not None:
            analyses = self._source.analyses([chunk.id for chunk in may_state(asked, group)])
            stated = set(stating(asked, analyses))
            if stated:
                chunks = [chunk for chunk in group if chunk.id in stated]
                return _with_evidence(question, self._source.by_words(question.text, chunks), STATEMENTS)
        mentions = mentioning(question.text, group, self._subject if self._is_mixed else "")
        if not mentions and question.model in WITHOUT_MODEL and question.names:
            return worded(question, ", ".join(question.names[:NAMES_OF_TOPIC]), TOPIC)
        return _with_evidence(question, self._source.by_words(question.text, mentions), MENTIONS)

    def _saying(self, question: str, chunk_ids: Sequence[str]) -> list[str]:
        """The passages that have all that the question says, by their ids; none where it has a fault."""
        return [chunk.id for chunk in self._source.get(chunk_ids) if not fault_in_passage(question, chunk.passage)]

    def stated(self, community: Community, question: str) -> Stated | None:
        """The statement of the community that its parse turned into the question; None for another question."""
        return stated_in(question, self._source.analyses(evenly(community.chunk_ids, MOST_READ)).values())

    @cached_property
    def _subject(self) -> str:
        """What the passages of the whole index say that they are about."""
        return question_writer().subject_of(self._read(self._source.ids()))

    @cached_property
    def _language(self) -> str:
        """The language of most passages of the index."""
        return language_of_most(self._read(self._source.ids()))

    @cached_property
    def _suits_a_small_model(self) -> bool:
        """Whether headings announce questions, as a manual's, or passages define names, as an encyclopedia's."""
        if len(self._headed) >= ANNOUNCING * len(self._communities):
            return True
        chunks = self._source.get(evenly(self._source.ids(), DEFINING_READ))
        n_defining = sum(question_writer().defines(chunk.text, chunk.title) for chunk in chunks)
        return n_defining >= max(1, DEFINING * len(chunks))

    def _read(self, chunk_ids: Sequence[str]) -> list[str]:
        """Read passages with the headings of their sections as lines of Markdown, whatever format
        they are from."""
        passages = []
        for chunk in self._source.get(evenly(chunk_ids, MOST_READ)):
            title = question_writer().asked_title(chunk.title, chunk.document_id, chunk.text)
            passages.append("\n".join([title, *(f"## {heading}" for heading in chunk.headings), chunk.text]))
        return passages


def evenly(ids: Sequence[str], most: int) -> Sequence[str]:
    """Draw at most so many of the ids, evenly.

    >>> evenly("abcdef", 3)
    'ace'
    """
    return ids[:: max(1, math.ceil(len(ids) / most))]


def asked_in_words(counts: Mapping[str, int]) -> str:
    """Tell how many questions there are and who asked them, from their numbers by the model's name;
    "" for none.

    >>> asked_in_words({"gguf/small#adapter@1a2b3c4d": 3, EMBEDDED: 1})
    '4 questions: 3 by gguf/small#adapter, 1 by templates'
    """
    total = sum(counts.values())
    if not total:
        return ""
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    who = [f"{count:,} by {_who(model)}" for model, count in most_first]
    return f"{total:,} {'question' if total == 1 else 'questions'}: {', '.join(who)}"


def _who(model: str) -> str:
    """The model's name without the hash of its adapter."""
    plain = {EMBEDDED: "templates", PARSE: "the parse of a statement", TOPIC: "topics alone"}
    return plain.get(model) or model.partition("@")[0]


async def each_of(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """The items one by one, whichever way they come."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _broadest_first(community: Community) -> tuple[int, int, str]:
    return community.level, -len(community.chunk_ids), community.id


def _of(question: Question) -> str:
    return question.community_id or ""


def _with_evidence(question: Question, chunks: Sequence[Chunk], by: str) -> Question:
    return dataclasses.replace(question, evidence=tuple(chunk.id for chunk in chunks), evidence_by=by if chunks else "")


def worded(question: Question, text: str, model: str) -> Question:
    """The question with another text, which its id depends on, and the name of who worded it."""
    return dataclasses.replace(question, id=content_id("question", _of(question), text), text=text, model=model)
