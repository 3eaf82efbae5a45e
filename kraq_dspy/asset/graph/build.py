"""Builds one graph from extractions: names resolved, statements of one thing brought together (KRAQ paper, section 2).

mentions = Mentions.of(extractions)
candidates = propose_merges(mentions.names(), settings, embedder)
resolution = resolve_entities(mentions.names(), [c for c in candidates if c.certain or confirmed(c)])
graph = ResolvedMentions(mentions, resolution).graph()
"""

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.graph.candidates import by_preference, majority
from kraq_dspy.asset.graph.mentions import Mentions, Numbered, Rows, comparable, majorities
from kraq_dspy.asset.graph.numbered_graph import collector_paused, distinct, rows_by_group
from kraq_dspy.asset.graph.resolve import Resolution, entity_id_of
from kraq_dspy.records import PHRASE, Claim, Entity, Merge, Relationship, content_id

Ints = NDArray[np.int64]
Chosen = NDArray[np.bool_]
"""Which entities, by the numbers of their keys."""

_GROUPS = 10_000  # of rows, made lists of at once


@dataclass(frozen=True)
class Graph:
    """The graph of a corpus. Entities and relationships are sorted by id, claims in reading order.

    `descriptions` has entities and relationships with several descriptions, by id: the distinct
    ones that kraq joined, in reading order. A model may write a better one from them
    (`apply_descriptions`).
    """

    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    claims: tuple[Claim, ...] = ()
    merges: tuple[Merge, ...] = ()
    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def apply_descriptions(graph: Graph, descriptions: Mapping[str, str]) -> Graph:
    """`graph` with other descriptions for the entities and relationships of the given ids; blank ones are ignored."""
    better = {id: text.strip() for id, text in descriptions.items() if text.strip()}
    if not better:
        return graph

    return dataclasses.replace(
        graph,
        entities=tuple(
            dataclasses.replace(entity, description=better[entity.id]) if entity.id in better else entity
            for entity in graph.entities
        ),
        relationships=tuple(
            dataclasses.replace(link, description=better[link.id]) if link.id in better else link
            for link in graph.relationships
        ),
    )


def join_descriptions(descriptions: Iterable[str]) -> str:
    """The sentences of `descriptions` in order, without those that were said before or that another one contains.

    A single description stays as it is.
    """
    descriptions = tuple(descriptions)
    if len(descriptions) == 1:  # as of most links
        return descriptions[0].strip()

    descriptions = [text for text in dict.fromkeys(each.strip() for each in descriptions) if text]
    if len(descriptions) < 2:
        return "".join(descriptions)

    sentences: dict[str, str] = {}
    for description in descriptions:
        text = " ".join(description.split())
        for first, last in sentence_spans(text):
            sentences.setdefault(comparable(text[first:last]), text[first:last])

    padded = [f" {words} " for words in sentences]
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(sentences):
        for word in set(words.split(" ")):
            holding[word].append(number)

    not_contained = []
    for number, (words, sentence) in enumerate(sentences.items()):
        rarest = min((holding[word] for word in words.split(" ")), key=len)  # whichever contains it has this word, too
        if not any(other != number and padded[number] in padded[other] for other in rarest):
            not_contained.append(sentence)
    return " ".join(not_contained)


class ResolvedMentions:
    """Mentions whose names have become entities.

    `keys` are the entities' (`Resolution.key_of`), `key_of` has the number of a name's among them, `objects` that of a
    claim's object, -1 for what is no entity: a claim makes none.
    """

    def __init__(self, mentions: Mentions, resolution: Resolution) -> None:
        keys = Numbered()
        self.mentions, self.merges = mentions, resolution.merges
        self.key_of = np.array([keys[resolution.key_of(name)] for name in mentions.spellings], dtype=np.int64)
        claims, self._texts = mentions.rows("claims"), list(mentions.texts)
        object_of = np.full(len(self._texts) + 1, -1, dtype=np.int64)
        for text in distinct(claims[claims[:, 1] >= 0, 1]).tolist():
            object_of[text] = keys.get(resolution.key_of(self._texts[text]), -1)
        self.keys, self.objects = list(keys), object_of[claims[:, 1]]
        self._ids: dict[int, str] = {}

    def id_of(self, key: int) -> str:
        """The id of an entity by the number of its key."""
        if key not in self._ids:
            self._ids[key] = entity_id_of(self.keys[key])
        return self._ids[key]

    @collector_paused()
    def graph(self) -> Graph:
        return self.part(np.ones(len(self.keys), dtype=np.bool_))

    def part(self, chosen: Chosen, subjects: Chosen | None = None) -> Graph:
        """Take from the graph the entities that are `chosen`, the relationships of these with any,
        and the claims about the `subjects`, or about these: each as it is in the whole graph."""
        descriptions: dict[str, tuple[str, ...]] = {}
        return Graph(
            entities=tuple(self.entities(descriptions, chosen)),
            relationships=tuple(self.relationships(descriptions, chosen)),
            claims=tuple(self.claims(chosen if subjects is None else subjects)),
            merges=self.merges,
            descriptions=descriptions,
        )

    def numbers_of(self, ids: Collection[str]) -> Chosen:
        """Which keys have one of these entities' ids."""
        return np.array([self.id_of(key) in ids for key in range(len(self.keys))], dtype=np.bool_)

    def in_chunks(self) -> Ints:
        """Rows of an entity's key and the number of a chunk that has it, each once, sorted."""
        size = max(1, len(self.mentions.chunk_ids))
        mentioned = self.mentions.rows("mentioned")
        pairs = distinct(self.key_of[mentioned[:, 0]] * size + mentioned[:, 2])
        return np.stack(np.divmod(pairs, size), axis=1)

    def links(self) -> Rows:
        """Rows of source, target, predicate as it is compared, predicate, description or -1, and chunk, by the numbers
        of keys. A link of a thing with itself says nothing about two."""
        links = self.mentions.rows("links")
        source, target = self.key_of[links[:, 0]], self.key_of[links[:, 1]]
        between_two: Rows = links[source != target]
        between_two[:, 0], between_two[:, 1] = source[source != target], target[source != target]
        return between_two

    def are_phrases(self) -> Chosen:
        """Which keys are noun phrases and no names, as most of their mentions say."""
        kinds = majorities(self._rows_by_key("types"), self._texts)
        return np.array([kinds.get(key) == PHRASE for key in range(len(self.keys))], dtype=np.bool_)

    def _rows_by_key(self, log: str) -> Ints:
        """The rows of a log whose first column is a name, with the entity's key in place of the name."""
        rows = self.mentions.rows(log).astype(np.int64)
        rows[:, 0] = self.key_of[rows[:, 0]]
        return rows

    def entities(self, descriptions: dict[str, tuple[str, ...]], chosen: Chosen) -> list[Entity]:
        """The `chosen` ones by id; what was described in several ways goes into `descriptions`."""
        mentions, n_keys = self.mentions, len(self.keys)
        keys = np.flatnonzero(chosen).tolist()

        def rows_of(log: str) -> Ints:
            rows = self._rows_by_key(log)
            return rows[chosen[rows[:, 0]]]

        counts = np.bincount(mentions.rows("mentioned")[:, 0], minlength=len(self.key_of)).tolist()
        spellings: list[dict[str, int]] = [{} for _ in self.keys]
        for key, name, count in zip(self.key_of.tolist(), mentions.spellings, counts, strict=True):
            spellings[key][name] = count

        kinds = majorities(rows_of("types"), self._texts)
        in_chunks = self.in_chunks()
        chunks = rows_by_group(in_chunks[:, 0], in_chunks[:, 1], n_keys)

        links = self._links_of(chosen)
        ends = np.concatenate([links[:, :2], links[:, 1::-1]]).astype(np.int64)
        neighbours = distinct(ends[:, 0] * n_keys + ends[:, 1])
        degrees = np.bincount(neighbours // max(1, n_keys), minlength=n_keys).tolist()

        described = rows_of("described")
        statements = rows_by_group(described[:, 0], described, n_keys)
        mentioned = rows_of("mentioned")
        listed = mentioned[mentioned[:, 1] == 1, 0]
        unlisted = np.array(sorted(set(keys) - set(listed.tolist())), dtype=np.int64)
        first_statements = self._first_statements(unlisted, links)

        entities = []
        for key in keys:
            entity_id = self.id_of(key)
            names = by_preference(spellings[key])
            ways = _in_reading_order(statements[key][:, 1:].tolist(), self._texts)
            if not ways and key in first_statements:
                ways = (first_statements[key],)
            if len(ways) > 1:
                descriptions[entity_id] = ways

            entities.append(
                Entity(
                    id=entity_id,
                    name=names[0],
                    type=kinds.get(key, ""),
                    description=join_descriptions(ways),
                    names=names,
                    chunk_ids=self._chunks(chunks[key].tolist()),
                    degree=degrees[key],
                )
            )
        return sorted(entities, key=lambda entity: entity.id)

    def relationships(self, descriptions: dict[str, tuple[str, ...]], chosen: Chosen) -> list[Relationship]:
        """One for each source, target and predicate, of which one end at least is `chosen`, by id; as `entities`."""
        links = _in_groups(self._links_of(chosen))
        bounds = [*_begins(links), len(links)]
        texts = self.mentions.texts
        relationships = []
        for rows in _lists(links, bounds):
            source, target, compared, predicate, text, chunk = rows[0]
            if len(rows) == 1:  # as most do
                ways: tuple[str, ...] = (self._texts[text],) if text >= 0 else ()
                chunk_ids: tuple[str, ...] = (self.mentions.chunk_ids[chunk],)
            else:
                ways = _in_reading_order(((row[4], row[5]) for row in rows if row[4] >= 0), self._texts)
                chunk_ids = self._chunks(row[5] for row in rows)
                predicate = texts[majority(Counter(self._texts[row[3]] for row in rows))]

            id = content_id("relationship", self.id_of(source), self.id_of(target), self._texts[compared])
            if len(ways) > 1:
                descriptions[id] = ways
            relationships.append(
                Relationship(
                    id=id,
                    source_id=self.id_of(source),
                    target_id=self.id_of(target),
                    predicate=self._texts[predicate],
                    description=join_descriptions(ways),
                    weight=float(len(rows)),
                    chunk_ids=chunk_ids,
                )
            )
        return sorted(relationships, key=lambda link: link.id)

    def claims(self, chosen: Chosen) -> Iterator[Claim]:
        """The claims about the `chosen` ones, in reading order."""
        for key, other, statement, number in self._distinct_claims(chosen):
            object_id = None if other in (key, -1) else self.id_of(other)
            parts = self.id_of(key), self._texts[statement], self.mentions.chunk_ids[number]
            id = content_id("claim", *parts, *([object_id] if object_id else []))
            yield Claim(id, *parts, object_id)

    def subjects_with(self, objects: Chosen) -> Chosen:
        """Tell of which entities a claim says what links them to one of the `objects`."""
        rows = self.mentions.rows("claims")
        subjects = np.zeros(len(self.keys), dtype=np.bool_)
        subjects[self.key_of[rows[:, 0]][(self.objects >= 0) & objects[self.objects]]] = True
        return subjects

    def neighbours(self, chosen: Chosen) -> Chosen:
        """What is linked to one of the `chosen`."""
        linked = np.zeros(len(self.keys), dtype=np.bool_)
        linked[self._links_of(chosen)[:, :2].ravel()] = True
        return linked

    def count_relationships(self) -> int:
        return len(_begins(_in_groups(self.links())))

    def _links_of(self, chosen: Chosen) -> Rows:
        links = self.links()
        of_chosen: Rows = links[chosen[links[:, 0]] | chosen[links[:, 1]]]
        return of_chosen

    def _distinct_claims(self, chosen: Chosen) -> Iterator[tuple[int, int, int, int]]:
        """(subject's key, object's or -1, statement, chunk), each said once of a `chosen` subject in a chunk."""
        rows = self.mentions.rows("claims")
        key_of_subject = self.key_of[rows[:, 0]]
        of_chosen = np.flatnonzero(chosen[key_of_subject])
        subjects = key_of_subject[of_chosen].tolist()
        objects = self.objects[of_chosen].tolist()
        claims = rows[of_chosen].tolist()

        chunk_id = ""
        said_in_chunk: set[tuple[int, str]] = set()
        for subject, object_key, (_, _, statement, number) in zip(subjects, objects, claims, strict=True):
            if self.mentions.chunk_ids[number] != chunk_id:  # they come in reading order
                chunk_id = self.mentions.chunk_ids[number]
                said_in_chunk.clear()

            claim = subject, comparable(self._texts[statement])
            if claim not in said_in_chunk:
                said_in_chunk.add(claim)
                yield subject, object_key, statement, number

    def _first_statements(self, keys: Ints, links: Rows) -> dict[int, str]:
        """Return what the first relationship or claim says of each of the `keys` that one is
        about."""
        first: dict[int, tuple[int, str]] = {}

        def take(key: int, number: int, text: int) -> None:
            if key in chosen:
                statement = number, self._texts[text]
                first[key] = min(first.get(key, statement), statement)

        chosen = set(keys.tolist())
        subjects = np.zeros(len(self.keys), dtype=np.bool_)
        subjects[keys] = True
        for key, _, statement, number in self._distinct_claims(subjects):
            take(key, number, statement)

        about = np.isin(links[:, 0], keys) | np.isin(links[:, 1], keys)
        for source, target, _, _, text, number in links[about & (links[:, 4] >= 0)].tolist():
            take(source, number, text)
            take(target, number, text)
        return {key: text for key, (_, text) in first.items()}

    def _chunks(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.mentions.chunk_ids[number] for number in numbers))


def _in_groups(links: Rows) -> Rows:
    """Those of one source, target and predicate together, in their order."""
    grouped: Rows = links[np.lexsort((links[:, 2], links[:, 1], links[:, 0]))]
    return grouped


def _begins(grouped: Rows) -> list[int]:
    """Where each of the groups begins."""
    is_first = np.ones(len(grouped), dtype=np.bool_)
    is_first[1:] = np.any(grouped[1:, :3] != grouped[:-1, :3], axis=1)
    begins: list[int] = np.flatnonzero(is_first).tolist()
    return begins


def _lists(rows: Rows, bounds: Sequence[int]) -> Iterator[list[list[int]]]:
    """The rows between each bound and the next; lists of all at once would take gigabytes."""
    for start in range(0, len(bounds) - 1, _GROUPS):
        some = bounds[start : start + _GROUPS + 1]
        lists = rows[some[0] : some[-1]].tolist()
        yield from (lists[first - some[0] : last - some[0]] for first, last in itertools.pairwise(some))


def _in_reading_order(rows: Iterable[Sequence[int]], texts: Sequence[str]) -> tuple[str, ...]:
    """The distinct texts of (text, chunk), by the first chunk that has them, then alphabetically; chunks ascend."""
    first: dict[int, int] = {}
    for text, chunk in rows:
        first.setdefault(text, chunk)
    return tuple(texts[text] for text in sorted(first, key=lambda text: (first[text], texts[text])))
