"""Holds what questions are asked of: passages, names and communities, the material of one question, and a question on
its way to a row."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kraq_dspy.embedded_model import analyst
from kraq_dspy.errors import IndexStateError
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.records import Chunk, Community, Entity, content_id
from kraq_dspy.workspace import Workspace

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index


@dataclass(frozen=True, slots=True)
class Material:
    """What one question is asked of. `inputs` are those of the step that asks for this `kind`; `names` are what the
    question must not give away."""

    inputs: Mapping[str, Any]
    chunks: tuple[Chunk, ...]
    names: tuple[str, ...] = ()
    id: str = ""
    kind: str = ""
    community_id: str | None = None
    community_level: int = -1


@dataclass(frozen=True)
class AskedQuestion:
    """A question on its way to a row, with the names of the `checks` that it passed. `worded_by` names the model that
    put it in words, where another one had asked it."""

    material: Material
    question: str
    answers: tuple[str, ...]
    checks: tuple[str, ...] = ()
    worded_by: str = ""

    @property
    def id(self) -> str:
        return content_id(self.material.id, self.question)


def row_id(kind: str, question: str) -> str:
    """The id of a row, which depends on its kind and its question alone."""
    return content_id("testset", kind, question)[:16]


MOST_NAMES = 8
"""Names that a step is shown of a passage."""
_IDENTIFIER = re.compile(r"\d{5}")
"""What no person asks by: "PMID 28392032"."""
_BRACKETED = re.compile(r" \([^()]*\)$")


@dataclass(frozen=True)
class Corpus:
    """What materials are chosen from.

    >>> ada = Chunk("c1", "ada", 0, 0, 9, "Ada met Charles.", 4, title="Ada")
    >>> corpus = Corpus([ada], [Entity("e1", "Charles", "person", "", ("Charles",), ("c1",))], [])
    >>> corpus.names_of["c1"]
    ['Charles']
    """

    chunks: Sequence[Chunk]
    entities: Sequence[Entity]
    communities: Sequence[Community]
    analyses: Mapping[str, Analysis] = field(default_factory=dict)
    """What the parser says of the passages in English, by their ids."""
    by_id: Mapping[str, Chunk] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {chunk.id: chunk for chunk in self.chunks})

    @classmethod
    def of(cls, space: Workspace) -> "Corpus":
        """Return what an index has to ask about. Raises IndexStateError for an index without passages."""
        index = space.index
        chunks = list(index.all(Chunk))
        if not chunks:
            raise IndexStateError(
                f"{str(index.path)!r} has no passages to ask about. Build it again: kraq index CORPUS"
            )
        analyses = _remembered_analyses(index, chunks)
        return cls(chunks, list(index.all(Entity)), list(index.all(Community)), analyses)

    def chunks_of(self, ids: Iterable[str]) -> list[Chunk]:
        """The passages of these ids that are here, in their order."""
        return [self.by_id[id] for id in ids if id in self.by_id]

    @cached_property
    def names_of(self) -> Mapping[str, list[str]]:
        """The names that a passage tells of, by the passage's id, those that few passages have first."""
        entities: defaultdict[str, list[Entity]] = defaultdict(list)
        for entity in self.entities:
            if is_identifier(entity.name):
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
                titled.setdefault(without_brackets(chunk.title), chunk)
        for entity in self.entities:
            for chunk_id in entity.chunk_ids:
                untitled = self.by_id.get(chunk_id)
                if untitled is not None and not untitled.title and untitled.text.startswith(entity.name):
                    titled.setdefault(entity.name, untitled)
        return titled


def _remembered_analyses(index: "Index", chunks: Sequence[Chunk]) -> Mapping[str, Analysis]:
    """The parser's analyses that the index keeps; the analyst of this process has them too, and parses none again."""
    analyses = analyst().analyses_of(index, [chunk.id for chunk in chunks])
    analyst().remember({chunk.passage: analyses[chunk.id] for chunk in chunks if chunk.id in analyses})
    return analyses


def is_identifier(name: str) -> bool:
    """Whether a name has a long number, by which no person asks.

    >>> is_identifier("PMID 28392032"), is_identifier("Apollo 11")
    (True, False)
    """
    return bool(_IDENTIFIER.search(name))


def without_brackets(title: str) -> str:
    """A title without what tells it from others of the same name.

    >>> without_brackets("Night (memoir)")
    'Night'
    """
    return _BRACKETED.sub("", title)
