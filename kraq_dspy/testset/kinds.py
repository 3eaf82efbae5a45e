"""Declares the kinds of questions of a test set, and lists what each can be asked of in a corpus.

A passage belongs to the narrowest community that has it. Materials of all communities take turns, each community as
often as it is large, so that any number of them covers what the corpus is about.
"""

import dataclasses
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar

from kraq_dspy import signatures
from kraq_dspy.embedded_model import question_writer
from kraq_dspy.errors import ConfigError, did_you_mean
from kraq_dspy.language.text import content_words, sentences, with_another_name
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.records import Chunk, GoldPassage, TestsetRow, content_id
from kraq_dspy.testset.corpus import MOST_NAMES, AskedQuestion, Corpus, Material, is_identifier, without_brackets
from kraq_dspy.testset.gold_finder import nearness, says_all_names, says_answer
from kraq_dspy.testset.kind import ARTICLES, Kind, answers_in, question_of, texts_of


class Fact(Kind):
    """A question that one passage answers with a few words."""

    name = "fact"
    what = "One passage answers."
    share = 0.2
    signature = signatures.AskFact
    shortened = ("passage",)
    is_of_one_fact: ClassVar[bool] = True

    def materials(self, corpus: Corpus) -> list[Material]:
        """Each passage, with the names that it tells of."""
        return [
            Material({"passage": chunk.passage, "about": self.about(corpus.names_of.get(chunk.id, []))}, (chunk,))
            for chunk in corpus.chunks
        ]

    def about(self, names: Sequence[str]) -> list[str]:
        """The names of a passage, in the order in which the step that asks sees them."""
        return list(names)


MOST_LINKS = 6
"""Passages from which a name is followed to its own passage; one that all passages have links nothing."""
SAID = 0.6
"""Share of a description's telling words that its passage has."""


class Bridge(Kind):
    """A question that describes a thing by one passage and asks what another passage tells of it."""

    name = "bridge"
    what = "Two passages answer; what links them is not named."
    share = 0.2
    signature = signatures.AskBridge
    shortened = ("first_passage", "second_passage")
    is_pooled = False

    def materials(self, corpus: Corpus) -> list[Material]:
        """A passage that names a thing, and the passage about that thing, of another document."""
        materials = []
        for entity in corpus.entities:
            target = next((corpus.passage_about[name] for name in entity.names if name in corpus.passage_about), None)
            if target is None:
                continue

            sources = corpus.chunks_of(entity.chunk_ids)
            leading = [chunk for chunk in sources if chunk.document_id != target.document_id]
            name = without_brackets(target.title) or entity.name
            for chunk in leading[:MOST_LINKS]:
                inputs = {"first_passage": chunk.passage, "second_passage": target.passage, "link": name}
                materials.append(Material(inputs, (chunk, target), (name,)))
        return materials

    def hidden(self, material: Material) -> tuple[str, ...]:
        return material.names

    def read(self, reply: Any, inputs: Mapping[str, Any]) -> tuple[str, list[str], str]:
        """Put the description in the place of the name that links the passages, and look it up in the first one."""
        link, answers = inputs["link"], answers_in(reply)
        described = phrase_of((reply.description or "").strip(), link)
        question = with_description(question_of(reply), link, described)

        fault = self.fault(question, answers, texts_of(inputs), [link])
        if not fault and any(plain_words(answer) == plain_words(link) for answer in answers):
            fault = "asks for what links the passages"
        if not fault and described.lower() in question.lower() and not is_said(described, inputs["first_passage"]):
            fault = "is described as no passage says"
        return question, answers, fault


def with_description(question: str, name: str, description: str) -> str:
    """The question with the description in the place of a name; as it is where the description is none, or has it.

    A small model that is asked to leave a name out nearly always writes it. So it may, and the description is put in.

    >>> with_description("When was Ada Lovelace born?", "Ada Lovelace", "the daughter of Lord Byron")
    'When was the daughter of Lord Byron born?'
    """
    if not description or plain_words(name) in plain_words(description):
        return question

    without_article = re.sub(rf"\b[Tt]he (?={re.escape(name)})", "", question)
    changed = with_another_name(without_article, name, description)
    return changed[:1].upper() + changed[1:]


def phrase_of(description: str, name: str) -> str:
    """The description without what it says around it: "Ada was the daughter of Byron." is a sentence about the name.

    >>> phrase_of("Ada was a daughter of Byron. She wrote.", "Ada"), phrase_of("The daughter of Byron.", "Ada")
    ('the daughter of Byron', 'the daughter of Byron')
    """
    sentence = next(iter(sentences(description)), "").rstrip(".")
    about_name = re.fullmatch(
        rf"(?:the )?{re.escape(name)},? (?:is|was|are|were) (?:an?|the) (?P<said>.+)", sentence, re.I
    )
    return f"the {about_name['said']}" if about_name else _uncapitalized(sentence)


def is_said(description: str, passage: str) -> bool:
    """Whether the passage has most telling words of a description.

    >>> is_said("the daughter of Lord Byron", "Lord Byron had a daughter."), is_said("a king", "She wrote.")
    (True, False)
    """
    telling = set(content_words(description))
    return len(telling & set(content_words(passage))) >= SAID * len(telling)


def _uncapitalized(description: str) -> str:
    """The description as it stands within a sentence; its first word alone may be "The"."""
    article, space, rest = description.partition(" ")
    return f"{article.lower()}{space}{rest}" if article.lower() in ARTICLES else description


LISTED = range(2, 9)
"""Passages that a list is asked of."""


class ListOf(Kind):
    """A question whose answer is a list; the passages have an item each."""

    name = "list"
    what = "Each of several passages has an item of the answer."
    share = 0.05
    signature = signatures.AskList
    shortened = ("passages",)
    fewest_answers = 2

    def materials(self, corpus: Corpus) -> list[Material]:
        """The passages of a few documents that name the same thing."""
        materials = []
        for entity in corpus.entities:
            chunks = corpus.chunks_of(entity.chunk_ids)[: LISTED.stop - 1]
            if len({chunk.document_id for chunk in chunks}) in LISTED:
                inputs = {"passages": [chunk.passage for chunk in chunks], "shared": entity.name}
                materials.append(Material(inputs, tuple(chunks)))
        return materials

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        return any(says_answer(answer, chunk.passage) for answer in question.answers)

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        return dataclasses.replace(row, answer_items=tuple((item,) for item in question.answers))


class Comparison(Kind):
    """A question that compares two things of one type, and names both."""

    name = "comparison"
    what = "Two things are compared, each told of in a passage of its own."
    share = 0.05
    signature = signatures.AskComparison
    shortened = ("first_passage", "second_passage")
    is_pooled = False
    names_answers = True

    def materials(self, corpus: Corpus) -> list[Material]:
        """Pairs of things of one type and one community that have passages of their own."""
        alike: defaultdict[tuple[str, str], list[tuple[str, Chunk]]] = defaultdict(list)
        for entity in corpus.entities:
            chunk = corpus.passage_about.get(entity.name)
            if chunk is not None and chunk.id in entity.chunk_ids:
                community = corpus.community_of.get(chunk.id)
                alike[entity.type, community.id if community else ""].append((entity.name, chunk))

        materials = []
        for named_chunks in alike.values():
            pairs = zip(named_chunks[::2], named_chunks[1::2], strict=False)
            for (first_name, first), (second_name, second) in pairs:
                if first.document_id == second.document_id:
                    continue
                inputs = {
                    "first_passage": first.passage,
                    "second_passage": second.passage,
                    "names": [first_name, second_name],
                }
                materials.append(Material(inputs, (first, second)))
        return materials


OF_COMMUNITY = range(3, 11)
"""Passages of a community that a broad question is asked of."""
TOGETHER, MOST_TOGETHER = range(2, 7), 8
"""Documents, and passages, that two names stand together in for a broad question about both."""
BY_FEW = range(2, 9)
"""Documents that one name stands in for a broad question about it."""
TOLD_BY = range(2, 9)
"""Passages that a broad question is answered by: of more, nobody knows whether the pool has all."""
NUGGET_SAID = 0.6
"""Share of a nugget's words that a passage has which says it."""


class Broad(Kind):
    """A question that takes most passages of a group to answer well; its answer is a list of statements (nuggets)."""

    name = "broad"
    what = "Most passages of a community have a part of the answer."
    share = 0.3
    signature = signatures.AskBroad
    shortened = ("passages",)
    is_read_again = False  # no two accounts of much are alike
    copies_answers = False  # nuggets are statements in the model's own words

    def materials(self, corpus: Corpus) -> list[Material]:
        """The passages of a small community, those whose statements go together, and those of few documents that name
        the same one or two things."""
        return _of_communities(corpus) + _of_statements(corpus) + _named_together(corpus) + _named_by_few(corpus)

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        return any(nearness(nugget, chunk.passage) >= NUGGET_SAID for nugget in question.answers)

    def answer_in(self, question: AskedQuestion, chunk: Chunk) -> str:
        """The first sentence of a passage that has all names that the question asks about; "" for none."""
        names = [name for name in question.material.inputs["about"] if name in question.question]
        return says_all_names(names, chunk.passage)

    def lacks_gold(self, passages: Sequence[GoldPassage]) -> str:
        if len(passages) in TOLD_BY:
            return ""
        return "is told by one passage" if len(passages) < 2 else "is told by too many passages"

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        whole_answer = ". ".join(question.answers)
        return dataclasses.replace(row, answers=(whole_answer,), nuggets=question.answers)


def _told_by(chunks: Sequence[Chunk], about: Sequence[str], names: tuple[str, ...] = ()) -> Material:
    inputs = {"passages": [chunk.passage for chunk in chunks], "about": list(about)}
    return Material(inputs, tuple(chunks), names)


def _of_communities(corpus: Corpus) -> list[Material]:
    materials = []
    for community in corpus.communities:
        chunks = corpus.chunks_of(community.chunk_ids)
        if len(chunks) in OF_COMMUNITY:
            names: Counter[str] = Counter()
            for chunk in chunks:
                names.update(corpus.names_of.get(chunk.id, ()))
            materials.append(_told_by(chunks, [name for name, _ in names.most_common(MOST_NAMES)]))
    return materials


def _of_statements(corpus: Corpus) -> list[Material]:
    """Return passages of few documents whose statements go together, with what the statements name."""
    materials = []
    groups = question_writer().groups_in(corpus.analyses) if corpus.analyses else []
    for group in groups:
        chunks = corpus.chunks_of(group.told)
        if len({chunk.document_id for chunk in chunks}) >= TOGETHER.start:
            materials.append(_told_by(chunks, group.names, group.names))
    return materials


def _named_by_few(corpus: Corpus) -> list[Material]:
    """Return passages of few documents that name the same thing.

    Two entities may have one name, as a person and a place: who asks by it means the passages of both.
    """
    chunk_ids_by_name: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for entity in corpus.entities:
        if not is_identifier(entity.name):
            chunk_ids_by_name[(entity.name,)] |= dict.fromkeys(entity.chunk_ids)

    passages = {name: corpus.chunks_of(chunk_ids) for name, chunk_ids in chunk_ids_by_name.items()}
    return _told_together(passages, BY_FEW)


def _named_together(corpus: Corpus) -> list[Material]:
    """Passages of few documents that name the same two things."""
    passages: defaultdict[tuple[str, ...], list[Chunk]] = defaultdict(list)
    for chunk in corpus.chunks:
        for pair in combinations(sorted(corpus.names_of.get(chunk.id, ())), 2):
            passages[pair].append(chunk)
    return _told_together(passages, TOGETHER)


def _told_together(passages: Mapping[tuple[str, ...], Sequence[Chunk]], by_documents: range) -> list[Material]:
    """Materials for what so many documents name, with the passages that do.

    Each passage proposes one of the names, or pairs of names. So a name in many passages comes up
    more often than one in passing, and a passage of many names no more often than others.
    """
    by_few: dict[tuple[str, ...], Sequence[Chunk]] = {}
    names_by_passage: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for names, chunks in passages.items():
        if len({chunk.document_id for chunk in chunks}) in by_documents and len(chunks) <= MOST_TOGETHER:
            by_few[names] = chunks
            for chunk in chunks:
                names_by_passage[chunk.id].append(names)

    put_forward: set[tuple[str, ...]] = set()
    for chunk_id, named in names_by_passage.items():
        _, names = min((content_id(chunk_id, *names), names) for names in named)
        put_forward.add(names)

    return [_told_by(chunks, names, names) for names, chunks in by_few.items() if names in put_forward]


class Unanswerable(Fact):
    """A fact whose documents are taken away when it is asked."""

    name = "unanswerable"
    what = "Nothing answers, since the documents that do are hidden."
    share = 0.15
    has_answer = False

    def about(self, names: Sequence[str]) -> list[str]:
        """The other way round, so that of several statements another one is asked than for a fact."""
        return list(names[::-1])

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        return dataclasses.replace(
            row, answers=(), supporting_ids=(), hidden_documents=row.supporting_ids, solved_by=()
        )


class FalsePremise(Fact):
    """A question for a fact with another name, year, number or kind of thing, of which the corpus does not say that."""

    name = "false_premise"
    what = "Nothing answers, since one thing of the question is other than any passage says."
    share = 0.05
    has_answer = False
    is_changed = True

    def about(self, names: Sequence[str]) -> list[str]:
        """From the second on, so that of several statements another one may be asked than for a fact."""
        return [*names[1:], *names[:1]]


FACT, BRIDGE, LIST, COMPARISON = Fact.name, Bridge.name, ListOf.name, Comparison.name
BROAD, UNANSWERABLE, FALSE_PREMISE = Broad.name, Unanswerable.name, FalsePremise.name

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (Fact(), Bridge(), ListOf(), Comparison(), Broad(), Unanswerable(), FalsePremise())
}
"""Each kind by its name."""

SHARES: Mapping[str, float] = {name: kind.share for name, kind in KINDS.items()}
"""Of a set, if nothing else is said. What a kind cannot fill goes to those that can."""

WITHOUT_ANSWER = frozenset(name for name, kind in KINDS.items() if not kind.has_answer)


def read_shares(words: Mapping[str, float] | None) -> dict[str, float]:
    """Shares by kind that sum to 1. Raises ConfigError for an unknown kind, and if none has a share.

    >>> read_shares({"fact": 3, "bridge": 1})
    {'fact': 0.75, 'bridge': 0.25}
    """
    shares = dict(SHARES if words is None else words)
    for kind, share in shares.items():
        if kind not in KINDS:
            raise ConfigError(f"There is no kind {kind!r}{did_you_mean(kind, KINDS)}; there are: {', '.join(KINDS)}.")
        if share < 0:
            raise ConfigError(f"The share of {kind!r} is {share}; expected 0 or more.")

    total = sum(shares.values())
    if not total:
        raise ConfigError("No kind has a share; expected at least one above 0.")
    return {kind: share / total for kind, share in shares.items() if share}


def materials_of(corpus: Corpus, kind: str, *, seed: int) -> list[Material]:
    """All of one kind, in the order in which they are to be used."""
    placed = [_placed(corpus, kind, material) for material in KINDS[kind].materials(corpus)]
    return in_turns({material.id: material for material in placed}.values(), seed=f"{kind} {seed}")


def _placed(corpus: Corpus, kind: str, material: Material) -> Material:
    """Give a material its kind, its id, and the community of its first passage."""
    id = content_id(kind, *(chunk.id for chunk in material.chunks), *material.names)
    community = corpus.community_of.get(material.chunks[0].id)
    level = -1 if community is None else community.level
    community_id = None if community is None else community.id
    return dataclasses.replace(material, id=id, kind=kind, community_id=community_id, community_level=level)


def in_turns(materials: Iterable[Material], *, seed: str) -> list[Material]:
    """The materials in an order by chance in which every community comes as often as it is large, all along the way."""
    draw = random.Random(seed)
    strata: defaultdict[str, list[Material]] = defaultdict(list)
    for material in sorted(materials, key=lambda material: material.id):
        strata[material.community_id or ""].append(material)

    placed: list[tuple[float, str, Material]] = []
    for stratum in strata.values():
        draw.shuffle(stratum)
        begin = draw.random()
        for place, material in enumerate(stratum):
            placed.append(((place + begin) / len(stratum), material.id, material))
    return [material for _, _, material in sorted(placed, key=lambda entry: entry[:2])]
