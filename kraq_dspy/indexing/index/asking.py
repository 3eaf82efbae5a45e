"""Decides what each community is asked about, who asks, and whether the question leads back to its passages.

What people look for, a heading that announces a question, is asked about, and none of it twice. A template asks where
it knows what to; a model elsewhere, and it is shown the heading and its text where the community is narrow.
"""

import dataclasses
import math
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.lms.engines.rule_based.ask import NOTHING_NAMED, asks_of_something, definition, question_about
from kraq_dspy.models.lms.engines.rule_based.headings import (
    Heading,
    announced_question,
    headings_by_weight,
    headings_of,
    placed,
    subject_of,
)
from kraq_dspy.models.lms.engines.rule_based.text import language_of, parted, sentences
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.pipeline import KRAQ, each_of
from kraq_dspy.records import Chunk, Community, Question, Summary, content_id
from kraq_dspy.settings import EMBEDDED

MOST_READ = 40  # passages of a community or an index, evenly drawn, in which headings are looked for
NARROW = 3  # passages of a community that a model is asked about by a heading and its text, not by their summary
NEAREST = 10  # passages of an index among which a model's question must have one of its own
LONGEST = 140  # characters of a question
DEFINING_READ = 200  # passages of an index, evenly drawn, in which definitions are looked for
DEFINING = 0.04  # share of passages that define something, from which a small model asks well
ANNOUNCING = 0.25  # share of communities whose headings announce a question, from which it does as well
SHOWN = 80  # words of a heading's text that a generator sees


@dataclass(frozen=True, slots=True)
class AskedHeading:
    """A heading, how its text begins, and the `question` that a template makes of it."""

    heading: str
    text: str
    question: str


class Asking:
    """How the questions of some communities of an index come about.

    Without `questions.fallback` nothing but the summaries is shown, and what a model wrote stays.
    """

    def __init__(self, communities: Sequence[Community], kraq: KRAQ, index: Index, embedder: Embedder) -> None:
        questions = kraq.settings.questions
        self._communities, self._index, self._embedder = communities, index, embedder
        self._fallback = questions.fallback
        self._is_small = questions.fallback and kraq.ask.candidates > 1
        ranked = sorted(communities, key=_broadest_first)
        self._broadest = {community.id for community in ranked[: questions.broadest]}
        self._headed = headings_asked(communities, self._passages, self._subject) if questions.fallback else {}
        self._instead = {id: heading.question for id, heading in self._headed.items()}

    async def shown(
        self, summaries: Iterable[Summary] | AsyncIterable[Summary], summarized: AbstractSet[str]
    ) -> AsyncIterator[Summary]:
        """The summaries, headings and their texts in place of those of narrow communities (a small model gets lost in
        summaries of much), and of communities that are not among the ids of the `summarized`."""
        narrow = {one.id for one in self._communities if self._is_small or len(one.chunk_ids) <= NARROW}
        async for summary in each_of(summaries):
            heading = self._headed.get(summary.community_id) if summary.community_id in narrow else None
            yield dataclasses.replace(summary, title=heading.heading, text=heading.text) if heading else summary
        for id, heading in self._headed.items():
            if id not in summarized:
                yield Summary(id, heading.heading, heading.text, (), EMBEDDED)

    def template(self, community: Community, summary: str) -> str:
        """A question after a heading of the community's passages or after its summary; "" where nothing is named."""
        if community.id not in self._instead:
            question = question_about(summary, self._passages(community.chunk_ids), self._subject)
            self._instead[community.id] = "" if question == NOTHING_NAMED else question
        return self._instead[community.id]

    def asks_model(self, community: Community, summary: str) -> bool:
        """Whether the model is asked: a small one is right less often than a template that knows what to ask, and
        hardly ever about texts that neither say what things are nor have headings which announce questions (news,
        abstracts, licences)."""
        if community.id not in self._broadest or not self._is_small or community.id in self._headed:
            return community.id in self._broadest
        return self._suits_a_small_model and not asks_of_something(self.template(community, summary))

    def leading_back(self, questions: Sequence[Question]) -> list[Question]:
        """A model's questions say what the index is about, as the templates do, and lead to a passage of theirs: one
        that has none among the nearest of the index makes way for the template's."""
        if not self._fallback:
            return list(questions)
        kept = [
            question if question.model == EMBEDDED else _worded(question, placed(question.text, self._subject))
            for question in questions
        ]
        doubtful = [question for question in kept if question.model != EMBEDDED and self._instead.get(_of(question))]
        if not doubtful:
            return kept
        vectors = self._embedder.encode_queries([question.text for question in doubtful])
        nearest = self._index.chunk_vectors.search(vectors, NEAREST)
        astray: dict[str, Question] = {}
        for question, hits in zip(doubtful, nearest, strict=True):
            if not any(chunk_id in question.chunk_ids for chunk_id, _ in hits):
                template = _worded(question, self._instead[_of(question)])
                astray[question.id] = dataclasses.replace(template, model=EMBEDDED)
        return [astray.get(question.id, question) for question in kept]

    @cached_property
    def _subject(self) -> str:
        """What the passages of the whole index say that they are about."""
        return subject_of(self._passages(list(self._index.reading_order())))

    @cached_property
    def _suits_a_small_model(self) -> bool:
        """Whether headings announce questions, as a manual's, or passages define names, as an encyclopedia's."""
        if len(self._headed) >= ANNOUNCING * len(self._communities):
            return True
        ids = list(self._index.reading_order())
        chunks = self._index.get(Chunk, ids[:: max(1, math.ceil(len(ids) / DEFINING_READ))])
        defining = (any(definition(part, (one.title,)) for part in sentences(one.text)) for one in chunks)
        return sum(defining) >= max(1, DEFINING * len(chunks))

    def _passages(self, chunk_ids: Sequence[str]) -> list[str]:
        """With the headings of their sections as lines of Markdown, whatever format they are from."""
        step = max(1, math.ceil(len(chunk_ids) / MOST_READ))
        chunks = self._index.get(Chunk, chunk_ids[::step])
        return ["\n".join([one.title, *(f"## {heading}" for heading in one.headings), one.text]) for one in chunks]


def headings_asked(
    communities: Iterable[Community], passages_of: Callable[[Sequence[str]], list[str]], subject: str
) -> dict[str, AskedHeading]:
    """For community ids the weightiest heading of their passages that announces a question and that no community before
    has, the broadest first; communities without one are absent. English alone."""
    chosen: dict[str, AskedHeading] = {}
    asked: set[str] = set()
    for community in sorted(communities, key=_broadest_first):
        passages = passages_of(community.chunk_ids)
        if language_of("\n".join(passages)) != "en":
            continue
        for heading in headings_by_weight(passages, ""):
            question = announced_question(heading, passages, subject)
            if 0 < len(question) <= LONGEST and question.casefold() not in asked:
                asked.add(question.casefold())
                chosen[community.id] = AskedHeading(heading.text, _below(heading, passages), question)
                break
    return chosen


def _below(heading: Heading, passages: Sequence[str]) -> str:
    """The first sentences of what stands under the heading."""
    passage = next(passage for passage in passages if heading in headings_of(passage))
    words = " ".join(sentences(parted(passage)[1].rpartition(f"# {heading.text}\n")[2])).split()
    return " ".join(words[:SHOWN])


def _broadest_first(community: Community) -> tuple[int, int, str]:
    return community.level, -len(community.chunk_ids), community.id


def _of(question: Question) -> str:
    return question.community_id or ""


def _worded(question: Question, text: str) -> Question:
    return dataclasses.replace(question, id=content_id("question", _of(question), text), text=text)
