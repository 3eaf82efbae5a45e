"""From extractions to one graph: names resolved, statements of one thing brought together (KRAQ paper, section 2).

`build_graph` does it all. A caller that wants a model to confirm doubtful merges takes the steps one by one:

    mentions = Mentions.of(extractions)
    candidates = propose_merges(mentions.names(), settings, embedder)
    resolution = resolve_entities(mentions.names(), [c for c in candidates if c.certain or confirmed(c)])
    graph = mentions.graph(resolution)
"""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kraq_dspy.config import ResolveSettings
from kraq_dspy.graph.resolve import (
    NameCount,
    Resolution,
    by_preference,
    entity_id_of,
    majority,
    propose_merges,
    resolve_entities,
)
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Claim, Entity, Extraction, Merge, Relationship, content_id

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[。！？])\s*")
_TITLE_END = re.compile(
    r"(?:^|[\s(.])(?:[^\W\d_]|Dr|Mr|Mrs|Ms|St|Jr|Sr|Prof|Gen|No|vs|cf|Inc|Ltd|Co)\.$", re.IGNORECASE
)


@dataclass(frozen=True)
class Graph:
    """The graph of a corpus. Entities and relationships are sorted by id, claims in reading order.

    `descriptions` holds, by the id of an entity or a relationship, the distinct descriptions that were joined into its
    description, in reading order; a model may write a better one from them (`apply_descriptions`).
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    claims: tuple[Claim, ...] = ()
    merges: tuple[Merge, ...] = ()
    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def build_graph(
    extractions: Iterable[Extraction],
    settings: ResolveSettings,
    embedder: Embedder | None = None,
    *,
    resolution: Resolution | None = None,
) -> Graph:
    """The graph of `extractions`, which are read once and whose order is the reading order.

    Without `resolution`, names are resolved by what is certain, without asking a model. Ends of a relationship and
    subjects of a claim that no extraction lists as entities become entities, described by the first statement about
    them. Statements without a name on either end, and those of a thing about itself, are dropped.
    """
    mentions = Mentions.of(extractions)
    if resolution is None:
        names = mentions.names()
        # Without a model to ask, what an embedder finds is doubtful and would not be used.
        certain = [candidate for candidate in propose_merges(names, settings) if candidate.certain]
        resolution = resolve_entities(names, certain)
    return mentions.graph(resolution)


def apply_descriptions(graph: Graph, descriptions: Mapping[str, str]) -> Graph:
    """`graph` with other descriptions for the entities and relationships of the given ids; blank ones are ignored."""
    better = {id: text.strip() for id, text in descriptions.items() if text.strip()}
    if not better:
        return graph
    return dataclasses.replace(
        graph,
        entities=tuple(
            dataclasses.replace(entity, description=better.get(entity.id, entity.description))
            for entity in graph.entities
        ),
        relationships=tuple(
            dataclasses.replace(link, description=better.get(link.id, link.description)) for link in graph.relationships
        ),
    )


def join_descriptions(descriptions: Iterable[str]) -> str:
    """The sentences of `descriptions` in order, without those that were said before or that another one contains.

    A single description stays as it is.
    """
    descriptions = [text for text in dict.fromkeys(each.strip() for each in descriptions) if text]
    if len(descriptions) < 2:
        return "".join(descriptions)
    sentences: dict[str, str] = {}
    for description in descriptions:
        for sentence in _sentences(description):
            sentences.setdefault(_said(sentence), sentence)
    everything = "\n".join(f" {said} " for said in sentences)
    kept, start = [], 0
    for said, sentence in sentences.items():
        own = len(said) + 2
        text = f" {said} "
        if everything.find(text, 0, start) < 0 and everything.find(text, start + own) < 0:
            kept.append(sentence)
        start += own + 1
    return " ".join(kept)


def _sentences(description: str) -> list[str]:
    sentences: list[str] = []
    for part in _SENTENCE_END.split(" ".join(description.split())):
        if sentences and _TITLE_END.search(sentences[-1]):
            sentences[-1] += f" {part}"
        elif part:
            sentences.append(part)
    return sentences


def _said(sentence: str) -> str:
    """What counts when sentences are compared: their words."""
    return " ".join(re.findall(r"\w+", sentence.casefold())) or sentence


class Mentions:
    """What the extractions say, by unresolved names. Holds each distinct text once, and chunks by their number."""

    def __init__(self) -> None:
        self._chunk_ids: list[str] = []
        self._spellings: dict[str, _Thing] = {}
        self._links: dict[tuple[str, str, str], _Link] = {}
        self._claims: dict[tuple[str, int, str], tuple[str, int, str]] = {}

    @classmethod
    def of(cls, extractions: Iterable[Extraction]) -> "Mentions":
        mentions = cls()
        for extraction in extractions:
            mentions.add(extraction)
        return mentions

    def add(self, extraction: Extraction) -> None:
        """The next extraction in reading order."""
        number = len(self._chunk_ids)
        self._chunk_ids.append(extraction.chunk_id)
        for entity in extraction.entities:
            if not entity.name.strip():
                continue
            thing = self._mention(entity.name, number)
            thing.listed = True
            if entity.type.strip():
                thing.types[entity.type.strip()] += 1
            if entity.description.strip():
                thing.descriptions.setdefault(entity.description.strip(), number)
        for link in extraction.relationships:
            if not link.source.strip() or not link.target.strip():
                continue
            for name in (link.source, link.target):
                self._mention(name, number)
            predicate = " ".join(link.predicate.split())
            known = self._links.setdefault((link.source, link.target, _said(predicate) if predicate else ""), _Link())
            known.predicates[predicate] += 1
            known.chunks[number] += 1
            if link.description.strip():
                known.descriptions.setdefault(link.description.strip(), number)
        for claim in extraction.claims:
            if claim.subject.strip() and claim.statement.strip():
                self._mention(claim.subject, number)
                statement = " ".join(claim.statement.split())
                key = (claim.subject, number, _said(statement))
                self._claims.setdefault(key, (claim.subject, number, statement))

    def names(self) -> list[NameCount]:
        """The distinct spellings, sorted, with their counts; blank ones left out."""
        return [NameCount(name, majority(t.types), t.count) for name, t in sorted(self._spellings.items())]

    def graph(self, resolution: Resolution) -> Graph:
        keys = {name: resolution.key_of(name) for name in self._spellings}
        things: dict[str, _Thing] = defaultdict(_Thing)
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        for name, thing in sorted(self._spellings.items()):
            things[keys[name]].take(thing)
            spellings[keys[name]][name] += thing.count
        links = self._resolved_links(keys)
        claims = self._resolved_claims(keys)
        stand_ins = _first_statements(links, claims)
        neighbours: dict[str, set[str]] = defaultdict(set)
        for source, target, _ in links:
            neighbours[source].add(target)
            neighbours[target].add(source)
        descriptions: dict[str, tuple[str, ...]] = {}
        entities: list[Entity] = []
        for key, thing in things.items():
            id = entity_id_of(key)
            texts = thing.texts()
            if not texts and not thing.listed and key in stand_ins:
                texts = (stand_ins[key][1],)
            descriptions[id] = texts
            ordered = by_preference(spellings[key])
            entities.append(
                Entity(
                    id=id,
                    name=ordered[0],
                    type=majority(thing.types),
                    description=join_descriptions(texts),
                    names=ordered,
                    chunk_ids=self._chunks(thing.chunks),
                    degree=len(neighbours[key]),
                )
            )
        relationships: list[Relationship] = []
        for (source, target, predicate), link in links.items():
            source_id, target_id = entity_id_of(source), entity_id_of(target)
            id = content_id("relationship", source_id, target_id, predicate)
            descriptions[id] = link.texts()
            relationships.append(
                Relationship(
                    id=id,
                    source_id=source_id,
                    target_id=target_id,
                    predicate=majority(link.predicates),
                    description=join_descriptions(link.texts()),
                    weight=float(sum(link.chunks.values())),
                    chunk_ids=self._chunks(link.chunks),
                )
            )
        return Graph(
            entities=tuple(sorted(entities, key=lambda entity: entity.id)),
            relationships=tuple(sorted(relationships, key=lambda link: link.id)),
            claims=tuple(
                Claim(
                    id=content_id("claim", entity_id_of(key), statement, self._chunk_ids[number]),
                    entity_id=entity_id_of(key),
                    statement=statement,
                    chunk_id=self._chunk_ids[number],
                )
                for key, number, statement in claims
            ),
            merges=resolution.merges,
            descriptions=descriptions,
        )

    def _mention(self, name: str, number: int) -> "_Thing":
        thing = self._spellings.setdefault(name, _Thing())
        thing.count += 1
        thing.chunks[number] = None
        return thing

    def _chunks(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._chunk_ids[number] for number in sorted(numbers)))

    def _resolved_links(self, keys: Mapping[str, str]) -> dict[tuple[str, str, str], "_Link"]:
        """By (source key, target key, predicate); a link of a thing with itself says nothing about two."""
        links: dict[tuple[str, str, str], _Link] = defaultdict(_Link)
        for (source, target, predicate), link in self._links.items():
            if keys[source] != keys[target]:
                links[keys[source], keys[target], predicate].take(link)
        return links

    def _resolved_claims(self, keys: Mapping[str, str]) -> list[tuple[str, int, str]]:
        """(subject key, chunk number, statement) in reading order, each said once per subject and chunk."""
        claims: dict[tuple[str, str, str], tuple[str, int, str]] = {}
        for (subject, number, said), (_, _, statement) in self._claims.items():
            claims.setdefault((keys[subject], self._chunk_ids[number], said), (keys[subject], number, statement))
        return list(claims.values())


@dataclass
class _Thing:
    """What is said of one name. Numbers are those of chunks; descriptions map to the first chunk that has them."""

    count: int = 0
    types: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, int] = field(default_factory=dict)
    chunks: dict[int, None] = field(default_factory=dict)
    listed: bool = False

    def take(self, other: "_Thing") -> None:
        self.count += other.count
        self.types.update(other.types)
        self.chunks.update(other.chunks)
        self.listed |= other.listed
        _take_descriptions(self.descriptions, other.descriptions)

    def texts(self) -> tuple[str, ...]:
        return _in_reading_order(self.descriptions)


@dataclass
class _Link:
    """What is said of one pair; `chunks` counts the statements of each chunk."""

    predicates: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, int] = field(default_factory=dict)
    chunks: Counter[int] = field(default_factory=Counter)

    def take(self, other: "_Link") -> None:
        self.predicates.update(other.predicates)
        self.chunks.update(other.chunks)
        _take_descriptions(self.descriptions, other.descriptions)

    def texts(self) -> tuple[str, ...]:
        return _in_reading_order(self.descriptions)


def _take_descriptions(into: dict[str, int], other: Mapping[str, int]) -> None:
    for text, number in other.items():
        into[text] = min(number, into.get(text, number))


def _in_reading_order(descriptions: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(descriptions, key=lambda text: (descriptions[text], text)))


def _first_statements(
    links: Mapping[tuple[str, str, str], _Link], claims: Sequence[tuple[str, int, str]]
) -> dict[str, tuple[int, str]]:
    """By key, the first (chunk number, text) of a relationship or a claim about it."""
    first: dict[str, tuple[int, str]] = {}
    statements: list[tuple[int, str, tuple[str, ...]]] = [(number, text, (key,)) for key, number, text in claims]
    for (source, target, _), link in links.items():
        statements += [(number, text, (source, target)) for text, number in link.descriptions.items()]
    for number, text, keys in statements:
        for key in keys:
            first[key] = min(first.get(key, (number, text)), (number, text))
    return first
