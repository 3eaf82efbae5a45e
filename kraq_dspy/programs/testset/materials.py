"""Chooses what questions are asked of: passages and names of every part of the corpus, spread by a seed.

A passage belongs to the narrowest community that has it. Materials of all communities take turns, each community as
often as it is large, so that any number of them covers what the corpus is about.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from kraq_dspy.programs.testset import kinds
from kraq_dspy.records import Chunk, Community, Entity, content_id

MOST_NAMES = 8
"""Names that a step is shown of a passage."""
LISTED = range(2, 9)
BROAD = range(3, 11)
"""Passages that a list, and a broad question, is asked of."""
TOGETHER, MOST_TOGETHER = range(2, 7), 8
"""Documents, and passages, that two names stand together in for a broad question about both."""
BY_FEW = range(2, 9)
"""Documents that one name stands in for a broad question about it."""
MOST_LINKS = 6
"""Passages from which a name is followed to its own passage; one that all passages have links nothing."""
_IDENTIFIER = re.compile(r"\d{5}")
"""What no person asks by: "PMID 28392032"."""
_BRACKETED = re.compile(r" \([^)]*\)$")


@dataclass(frozen=True, slots=True)
class Material:
    """What one question is asked of. `inputs` are those of the step that asks for this `kind`; `names` are what the
    question must not give away."""

    id: str
    kind: str
    inputs: Mapping[str, Any]
    chunks: tuple[Chunk, ...]
    names: tuple[str, ...] = ()
    community_id: str | None = None
    community_level: int = -1


@dataclass(frozen=True)
class Corpus:
    """What materials are chosen from.

    >>> ada = Chunk("c1", "ada", 0, 0, 9, "Ada met Charles.", 4, title="Ada")
    >>> corpus = Corpus([ada], [Entity("e1", "Charles", "person", "", ("Charles",), ("c1",))], [])
    >>> corpus.materials("fact", seed=0)[0].inputs["about"]
    ['Charles']
    """

    chunks: Sequence[Chunk]
    entities: Sequence[Entity]
    communities: Sequence[Community]
    by_id: Mapping[str, Chunk] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {chunk.id: chunk for chunk in self.chunks})

    def materials(self, kind: str, *, seed: int) -> list[Material]:
        """All of one kind, in the order in which they are to be used."""
        made = {
            kinds.FACT: self._facts,
            kinds.UNANSWERABLE: self._facts,
            kinds.FALSE_PREMISE: self._facts,
            kinds.BRIDGE: self._bridges,
            kinds.LIST: self._lists,
            kinds.COMPARISON: self._comparisons,
            kinds.BROAD: self._broad,
        }[kind]()
        named = [self._placed(kind, material) for material in made]
        return in_turns({material.id: material for material in named}.values(), seed=f"{kind} {seed}")

    @cached_property
    def names_of(self) -> Mapping[str, list[str]]:
        """The names that a passage tells of, by the passage's id, those that few passages have first."""
        entities: defaultdict[str, list[Entity]] = defaultdict(list)
        for entity in self.entities:
            if _IDENTIFIER.search(entity.name):
                continue
            for chunk_id in entity.chunk_ids:
                entities[chunk_id].append(entity)

        names = {}
        for chunk_id, named in entities.items():
            rarest_first = sorted(named, key=lambda entity: (len(entity.chunk_ids), entity.name))
            names[chunk_id] = [entity.name for entity in rarest_first[:MOST_NAMES]]
        return names

    def names_in(self, material: Material) -> list[str]:
        """The names that its passages tell of."""
        return list(dict.fromkeys(name for chunk in material.chunks for name in self.names_of.get(chunk.id, ())))

    @cached_property
    def community_of(self) -> Mapping[str, Community]:
        """The narrowest community of a passage, by its id."""
        narrowest: dict[str, Community] = {}
        for community in sorted(self.communities, key=lambda each: (-each.level, len(each.chunk_ids), each.id)):
            for chunk_id in community.chunk_ids:
                narrowest.setdefault(chunk_id, community)
        return narrowest

    @cached_property
    def passage_about(self) -> Mapping[str, Chunk]:
        """The first passage whose title is this name, or whose text begins with it if it has no title."""
        titled: dict[str, Chunk] = {}
        for chunk in self.chunks:
            if chunk.title:
                titled.setdefault(_BRACKETED.sub("", chunk.title), chunk)
        for entity in self.entities:
            for chunk_id in entity.chunk_ids:
                untitled = self.by_id.get(chunk_id)
                if untitled is not None and not untitled.title and untitled.text.startswith(entity.name):
                    titled.setdefault(entity.name, untitled)
        return titled

    def _placed(self, kind: str, material: Material) -> Material:
        """Give a material its id, and the community of its first passage."""
        community = self.community_of.get(material.chunks[0].id)
        id = content_id(kind, *(chunk.id for chunk in material.chunks), *material.names)
        place = (community.id, community.level) if community else (None, -1)
        return Material(id, kind, material.inputs, material.chunks, material.names, *place)

    def _facts(self) -> list[Material]:
        return [
            Material("", "", {"passage": chunk.passage, "about": self.names_of.get(chunk.id, [])}, (chunk,))
            for chunk in self.chunks
        ]

    def _bridges(self) -> list[Material]:
        materials = []
        for entity in self.entities:
            target = next((self.passage_about[name] for name in entity.names if name in self.passage_about), None)
            if target is None:
                continue

            sources = [self.by_id[id] for id in entity.chunk_ids if id in self.by_id]
            leading = [chunk for chunk in sources if chunk.document_id != target.document_id]
            name = _BRACKETED.sub("", target.title) or entity.name
            for chunk in leading[:MOST_LINKS]:
                inputs = {"first_passage": chunk.passage, "second_passage": target.passage, "link": name}
                materials.append(Material("", "", inputs, (chunk, target), (name,)))
        return materials

    def _lists(self) -> list[Material]:
        materials = []
        for entity in self.entities:
            chunks = [self.by_id[id] for id in entity.chunk_ids if id in self.by_id][: LISTED.stop - 1]
            if len({chunk.document_id for chunk in chunks}) in LISTED:
                inputs = {"passages": [chunk.passage for chunk in chunks], "shared": entity.name}
                materials.append(Material("", "", inputs, tuple(chunks)))
        return materials

    def _comparisons(self) -> list[Material]:
        alike: defaultdict[tuple[str, str], list[tuple[str, Chunk]]] = defaultdict(list)
        for entity in self.entities:
            chunk = self.passage_about.get(entity.name)
            if chunk is not None and chunk.id in entity.chunk_ids:
                community = self.community_of.get(chunk.id)
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
                materials.append(Material("", "", inputs, (first, second)))
        return materials

    def _broad(self) -> list[Material]:
        materials = []
        for community in self.communities:
            chunks = [self.by_id[id] for id in community.chunk_ids if id in self.by_id]
            if len(chunks) in BROAD:
                names: Counter[str] = Counter()
                for chunk in chunks:
                    names.update(self.names_of.get(chunk.id, ()))
                about = [name for name, _ in names.most_common(MOST_NAMES)]
                inputs = {"passages": [chunk.passage for chunk in chunks], "about": about}
                materials.append(Material("", "", inputs, tuple(chunks)))
        return materials + self._named_together() + self._named_by_few()

    def _named_by_few(self) -> list[Material]:
        """Return passages of few documents that name the same thing.

        Two entities may have one name, as a person and a place: who asks by it means the passages of both.
        """
        chunk_ids_by_name: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for entity in self.entities:
            if not _IDENTIFIER.search(entity.name):
                chunk_ids_by_name[(entity.name,)] |= dict.fromkeys(entity.chunk_ids)

        passages = {}
        for name, chunk_ids in chunk_ids_by_name.items():
            passages[name] = [self.by_id[id] for id in chunk_ids if id in self.by_id]
        return _told_together(passages, BY_FEW)

    def _named_together(self) -> list[Material]:
        """Passages of few documents that name the same two things."""
        passages: defaultdict[tuple[str, ...], list[Chunk]] = defaultdict(list)
        for chunk in self.chunks:
            for pair in combinations(sorted(self.names_of.get(chunk.id, ())), 2):
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

    materials = []
    for names, chunks in by_few.items():
        if names in put_forward:
            inputs = {"passages": [chunk.passage for chunk in chunks], "about": list(names)}
            materials.append(Material("", "", inputs, tuple(chunks), names))
    return materials


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
