"""Builds one graph from extractions: names resolved, statements of one thing brought together (KRAQ paper, section 2).

mentions = Mentions.of(extractions)
candidates = propose_merges(mentions.names(), settings, embedder)
resolution = resolve_entities(mentions.names(), [c for c in candidates if c.certain or confirmed(c)])
graph = mentions.graph(resolution)
"""

import dataclasses
import itertools
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.corpus.sentences import sentence_spans
from kraq_dspy.graph.names import introduced_acronyms
from kraq_dspy.graph.resolve import NameCount, Resolution, by_preference, entity_id_of, majority
from kraq_dspy.records import Claim, Entity, Extraction, Merge, Relationship, content_id

Ints = NDArray[np.int64]
_Said = tuple[int, int | None, int, int]
"""Of a claim: its subject's key, its object's, the statement's text, the chunk."""


@dataclass(frozen=True)
class Graph:
    """The graph of a corpus. Entities and relationships are sorted by id, claims in reading order.

    `descriptions` holds, by the id of an entity or a relationship that was described in more than one way, the distinct
    descriptions that were joined into its description, in reading order; a model may write a better one from them
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
    descriptions = [text for text in dict.fromkeys(each.strip() for each in descriptions) if text]
    if len(descriptions) < 2:
        return "".join(descriptions)
    sentences: dict[str, str] = {}
    for description in descriptions:
        text = " ".join(description.split())
        for first, last in sentence_spans(text):
            sentences.setdefault(_comparable(text[first:last]), text[first:last])
    everything = "\n".join(f" {words} " for words in sentences)
    kept, start = [], 0
    for words, sentence in sentences.items():
        own = len(words) + 2
        text = f" {words} "
        if everything.find(text, 0, start) < 0 and everything.find(text, start + own) < 0:
            kept.append(sentence)
        start += own + 1
    return " ".join(kept)


def claim_of(entity_id: str, statement: str, chunk_id: str, object_id: str | None = None) -> Claim:
    """The claim with the id that its content gives it."""
    id = content_id("claim", entity_id, statement, chunk_id, *([object_id] if object_id else []))
    return Claim(id, entity_id, statement, chunk_id, object_id)


def _comparable(sentence: str) -> str:
    """The words alone, which is how sentences are compared."""
    return " ".join(re.findall(r"\w+", sentence.casefold())) or sentence


class _Numbered(dict[str, int]):
    """Each distinct string once, with its number in the order of coming."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class _Log:
    """Rows of integers, of 4 bytes each."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._values = array("i")

    def add(self, *row: int) -> None:
        self._values.extend(row)

    def rows(self) -> Ints:
        return np.array(self._values, dtype=np.int64).reshape(-1, self._width)


class Mentions:
    """What the extractions say, by unresolved names.

    Names and texts are held once, what is said as rows of their numbers: dictionaries of what is said of each pair took
    kilobytes a relationship.
    """

    def __init__(self) -> None:
        self._chunk_ids: list[str] = []
        self._names = _Numbered()
        self._texts = _Numbered()
        self._listed: set[int] = set()  # names that are more than an end or a subject
        self._mentioned = _Log(2)  # name, chunk
        self._types = _Log(2)  # name, text
        self._described = _Log(3)  # name, text, chunk
        self._links = _Log(6)  # source, target, predicate as it is compared, predicate, description or -1, chunk
        self._claims = _Log(4)  # subject, object's text or -1, statement, chunk

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
            name = self._mention(entity.name, number)
            self._listed.add(name)
            if kind := entity.type.strip():
                self._types.add(name, self._texts[kind])
            if text := entity.description.strip():
                self._described.add(name, self._texts[text], number)
        for link in extraction.relationships:
            if not link.source.strip() or not link.target.strip():
                continue
            ends = self._mention(link.source, number), self._mention(link.target, number)
            predicate = " ".join(link.predicate.split())
            compared = self._texts[_comparable(predicate) if predicate else ""]
            text = link.description.strip()
            self._links.add(*ends, compared, self._texts[predicate], self._texts[text] if text else -1, number)
        for claim in extraction.claims:
            if claim.subject.strip() and claim.statement.strip():
                subject = self._mention(claim.subject, number)
                other = self._texts[claim.object] if claim.object.strip() else -1
                self._claims.add(subject, other, self._texts[" ".join(claim.statement.split())], number)

    def names(self) -> list[NameCount]:
        """The distinct spellings, sorted, with their counts; blank ones left out."""
        counts = np.bincount(self._mentioned.rows()[:, 0], minlength=len(self._names)).tolist()
        types = _majorities(self._types.rows(), list(self._texts))
        return [NameCount(name, types.get(n, ""), counts[n]) for name, n in sorted(self._names.items())]

    def introduced_acronyms(self) -> frozenset[tuple[str, str]]:
        """Acronyms with their names, as keys, that a name, a description or a statement introduces."""
        return introduced_acronyms(itertools.chain(self._names, self._texts))

    def descriptions(self, names: Collection[str]) -> dict[str, str]:
        """The first description of each of `names` that has one."""
        texts, wanted = list(self._texts), {self._names[name]: name for name in names if name in self._names}
        first: dict[str, str] = {}
        for name, text, _ in self._described.rows().tolist():
            if name in wanted:
                first.setdefault(wanted[name], texts[text])
        return first

    def graph(self, resolution: Resolution) -> Graph:
        keys = _Numbered()
        key_of = np.array([keys[resolution.key_of(name)] for name in self._names], dtype=np.int64)
        ids = [entity_id_of(key) for key in keys]
        texts = list(self._texts)
        links = self._links.rows()
        links[:, :2] = key_of[links[:, :2]]
        links = links[links[:, 0] != links[:, 1]]  # a link of a thing with itself says nothing about two
        links = links[np.lexsort((links[:, 2], links[:, 1], links[:, 0]))]
        claims = list(self._resolved_claims(key_of, ids, texts, lambda name: keys.get(resolution.key_of(name))))
        descriptions: dict[str, tuple[str, ...]] = {}
        entities = list(self._entities(key_of, ids, texts, links, claims, descriptions))
        relationships = list(self._relationships(ids, texts, links, descriptions))
        entities.sort(key=lambda entity: entity.id)
        relationships.sort(key=lambda link: link.id)
        return Graph(
            entities=tuple(entities),
            relationships=tuple(relationships),
            claims=tuple(
                claim_of(ids[key], texts[statement], self._chunk_ids[number], None if other is None else ids[other])
                for key, other, statement, number in claims
            ),
            merges=resolution.merges,
            descriptions=descriptions,
        )

    def _mention(self, name: str, chunk: int) -> int:
        number = self._names[name]
        self._mentioned.add(number, chunk)
        return number

    def _chunks(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._chunk_ids[number] for number in numbers))

    def _entities(
        self,
        key_of: Ints,
        ids: Sequence[str],
        texts: Sequence[str],
        links: Ints,
        claims: Sequence[_Said],
        descriptions: dict[str, tuple[str, ...]],
    ) -> Iterator[Entity]:
        """One for each of `ids`; what was described in several ways goes into `descriptions`."""
        mentioned, described, types = self._mentioned.rows(), self._described.rows(), self._types.rows()
        counts = np.bincount(mentioned[:, 0], minlength=len(key_of)).tolist()
        spellings: list[dict[str, int]] = [{} for _ in ids]
        for (name, number), key in zip(self._names.items(), key_of.tolist(), strict=True):
            spellings[key][name] = counts[number]
        for rows in (mentioned, described, types):
            rows[:, 0] = key_of[rows[:, 0]]
        kinds = _majorities(types, texts)
        size = len(self._chunk_ids)
        in_chunk = np.unique(mentioned[:, 0] * size + mentioned[:, 1])
        chunks = _split(in_chunk // size, in_chunk % size, len(ids))
        described = described[np.argsort(described[:, 0], kind="stable")]
        statements = [
            _in_reading_order(rows[:, 1:].tolist(), texts) for rows in _split(described[:, 0], described, len(ids))
        ]
        listed = {int(key_of[name]) for name in self._listed}
        stand_ins = _first_statements({n for n in range(len(ids)) if n not in listed}, links, claims, texts)
        ends = np.concatenate([links[:, 0] * len(ids) + links[:, 1], links[:, 1] * len(ids) + links[:, 0]])
        degrees = np.bincount(np.unique(ends) // max(1, len(ids)), minlength=len(ids)).tolist()
        for key, id in enumerate(ids):
            ways = statements[key] or ((stand_ins[key],) if key in stand_ins else ())
            if len(ways) > 1:
                descriptions[id] = ways
            ordered = by_preference(spellings[key])
            yield Entity(
                id=id,
                name=ordered[0],
                type=kinds.get(key, ""),
                description=join_descriptions(ways),
                names=ordered,
                chunk_ids=self._chunks(chunks[key].tolist()),
                degree=degrees[key],
            )

    def _relationships(
        self, ids: Sequence[str], texts: Sequence[str], links: Ints, descriptions: dict[str, tuple[str, ...]]
    ) -> Iterator[Relationship]:
        """One for each source, target and predicate of the sorted `links`."""
        new = np.flatnonzero(np.any(links[1:, :3] != links[:-1, :3], axis=1)) + 1
        bounds = [0, *new.tolist(), len(links)] if len(links) else []
        for start, end in itertools.pairwise(bounds):
            rows = links[start:end].tolist()
            source, target, compared = rows[0][:3]
            ways = _in_reading_order(((row[4], row[5]) for row in rows if row[4] >= 0), texts)
            id = content_id("relationship", ids[source], ids[target], texts[compared])
            if len(ways) > 1:
                descriptions[id] = ways
            yield Relationship(
                id=id,
                source_id=ids[source],
                target_id=ids[target],
                predicate=majority(Counter(texts[row[3]] for row in rows)),
                description=join_descriptions(ways),
                weight=float(len(rows)),
                chunk_ids=self._chunks(row[5] for row in rows),
            )

    def _resolved_claims(
        self, key_of: Ints, ids: Sequence[str], texts: Sequence[str], known_key: Callable[[str], int | None]
    ) -> Iterator[_Said]:
        """In reading order, each said once per subject and chunk. An object that is no entity is left out: a claim
        makes none."""
        known: set[str] = set()
        for subject, other, statement, number in self._claims.rows().tolist():
            key = int(key_of[subject])
            claim_id = content_id(ids[key], self._chunk_ids[number], _comparable(texts[statement]))
            if claim_id not in known:
                known.add(claim_id)
                object_key = known_key(texts[other]) if other >= 0 else None
                yield key, None if object_key == key else object_key, statement, number


def _split(groups: Ints, rows: Ints, count: int) -> list[Ints]:
    """`rows` by their group, 0 to `count` - 1; `groups` ascend."""
    return np.split(rows, np.searchsorted(groups, np.arange(1, count))) if count else []


def _majorities(rows: Ints, texts: Sequence[str]) -> dict[int, str]:
    """By the first column, the text that the second names most often."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for number, text in rows.tolist():
        counts[number][texts[text]] += 1
    return {number: majority(votes) for number, votes in counts.items()}


def _in_reading_order(rows: Iterable[Sequence[int]], texts: Sequence[str]) -> tuple[str, ...]:
    """The distinct texts of (text, chunk), by the first chunk that has them, then alphabetically; chunks ascend."""
    first: dict[int, int] = {}
    for text, chunk in rows:
        first.setdefault(text, chunk)
    return tuple(texts[text] for text in sorted(first, key=lambda text: (first[text], texts[text])))


def _first_statements(
    keys: Collection[int], links: Ints, claims: Iterable[_Said], texts: Sequence[str]
) -> dict[int, str]:
    """For those of the `keys` that a relationship or a claim is about, what the first one says."""
    first: dict[int, tuple[int, str]] = {}

    def take(key: int, number: int, text: str) -> None:
        if key in keys:
            first[key] = min(first.get(key, (number, text)), (number, text))

    for key, _, statement, number in claims:
        take(key, number, texts[statement])
    unlisted = np.array(sorted(keys), dtype=np.int64)
    about = np.isin(links[:, 0], unlisted) | np.isin(links[:, 1], unlisted)
    for source, target, _, _, text, number in links[about & (links[:, 4] >= 0)].tolist():
        take(source, number, texts[text])
        take(target, number, texts[text])
    return {key: text for key, (_, text) in first.items()}
