"""Tells which parts of an index a set of questions never touches, by the communities of the passages that they find."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import IndexStateError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.ports import VectorSearch
from kraq_dspy.records import Chunk, Community, Summary
from kraq_dspy.workspace import Workspace

NEAR = 0.6
"""The cosine from which two questions ask alike."""
ABOUT = 0.5
"""The cosine from which a passage is about a question."""

NEAREST = 3
"""Passages through which a question touches communities."""


@dataclass(frozen=True, slots=True)
class CoveredCommunity:
    """A community of the broadest level, and how many of the questions touch it.

    `title` is that of its summary; without one, that of its first passage.
    """

    community_id: str
    title: str
    chunk_ids: tuple[str, ...]
    questions: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The communities of an index, and the questions that touch each community.

    Attributes:
        communities: all communities, those with the most passages first.
        questions: the number of questions.
        refused: ids of questions below the refusal threshold of the index; None if the index has no threshold.
        far: ids of further questions that are near no passage. Such a question touches no community, but may have an
            answer.
        unanticipated: ids of questions that touch a community, but are near no question of the index.
    """

    communities: tuple[CoveredCommunity, ...]
    questions: int
    refused: tuple[str, ...] | None
    far: tuple[str, ...]
    unanticipated: tuple[str, ...]

    @property
    def untouched(self) -> list[CoveredCommunity]:
        """Communities that no question touches."""
        return [community for community in self.communities if not community.questions]

    @property
    def share(self) -> float:
        """The share of the passages that lie in communities that some question touches."""
        every = sum(len(community.chunk_ids) for community in self.communities)
        touched = sum(len(community.chunk_ids) for community in self.communities if community.questions)
        return touched / every if every else 0.0


def coverage_of(space: Workspace, examples: Sequence[Example], *, about: float = ABOUT) -> Coverage:
    """Find the communities that questions touch. It calls no language model.

    Args:
        space: the open index.
        examples: the questions, with or without evidence.
        about: the least cosine at which a passage is near a question, in [-1, 1].

    Returns:
        The communities, with the questions that touch each.

    Raises:
        IndexStateError: for an index without communities.

    A question touches the communities of its gold documents. Without any, it touches those of the three
    nearest passages, if they are near it. A passage belongs to the smallest community of the broadest level
    that has it. Passages without one count as a community for each document. A question of the index
    anticipates one if their cosine is 0.6 or more.
    """
    index = space.index
    chunks = list(index.all(Chunk))
    broadest = [community for community in index.all(Community) if community.level == 0]
    if not broadest:
        raise IndexStateError(f"{str(index.path)!r} has no communities. Build it again: kraq index CORPUS --out DIR")

    place_of = _places_of_passages(broadest, chunks)
    members: defaultdict[str, list[str]] = defaultdict(list)
    of_document: defaultdict[str, set[str]] = defaultdict(set)
    first_titles: dict[str, str] = {}
    for chunk in chunks:
        place = place_of[chunk.id]
        members[place].append(chunk.id)
        first_titles.setdefault(place, chunk.title or chunk.document_id)
        of_document[chunk.document_id].add(place)

    without_evidence = [example for example in examples if not of_document.keys() & set(example.supporting_ids)]
    passages_of = _near(space, index.chunk_vectors, without_evidence, NEAREST, about)
    refused = _refused(space, without_evidence)
    touched: Counter[str] = Counter()
    far, on_topic = [], []
    for example in examples:
        near = passages_of.get(example.id)
        places = _places_of_evidence(example, of_document) if near is None else {place_of[id] for id in near}
        touched.update(places)
        if places:
            on_topic.append(example)
        elif example.id not in (refused or ()):
            far.append(example.id)

    titles = {summary.community_id: summary.title for summary in index.all(Summary) if summary.title}
    rows = [
        CoveredCommunity(place, titles.get(place, first_titles[place]), tuple(ids), touched[place])
        for place, ids in members.items()
    ]
    rows.sort(key=lambda each: (-len(each.chunk_ids), each.community_id))
    anticipated = _near(space, index.question_vectors, on_topic, 1, NEAR, filters={"source": "kraq"})
    unanticipated = tuple(id for id, questions in anticipated.items() if not questions)
    return Coverage(tuple(rows), len(examples), refused, tuple(far), unanticipated)


def _places_of_evidence(example: Example, of_document: Mapping[str, Collection[str]]) -> set[str]:
    return set[str]().union(*(of_document.get(document, ()) for document in example.supporting_ids))


def _places_of_passages(broadest: Iterable[Community], chunks: Iterable[Chunk]) -> dict[str, str]:
    """The place of each passage: the smallest community that has it, else its document."""
    place_of: dict[str, str] = {}
    for community in sorted(broadest, key=lambda each: (len(each.chunk_ids), each.id)):
        for chunk_id in community.chunk_ids:
            place_of.setdefault(chunk_id, community.id)

    for chunk in chunks:
        place_of.setdefault(chunk.id, f"document {chunk.document_id}")
    return place_of


def _near(
    space: Workspace, store: VectorSearch, examples: Sequence[Example], most: int, least: float, **options: Any
) -> dict[str, list[str]]:
    """Up to `most` ids of a store for each question, by its id, whose cosine is `least` or more."""
    if not examples:
        return {}
    vectors = space.embedder.encode_queries([example.question for example in examples])
    nearest = store.search(vectors, most, **options)
    return {
        example.id: [id for id, cosine in hits if cosine >= least]
        for example, hits in zip(examples, nearest, strict=True)
    }


def _refused(space: Workspace, examples: Sequence[Example]) -> tuple[str, ...] | None:
    """Ids of the questions that the documents do not answer; None where nothing tells."""
    judged = space.answerabilities([example.question for example in examples])
    if any(each.is_answerable is None for each in judged):
        return None
    return tuple(example.id for example, each in zip(examples, judged, strict=True) if not each.is_answerable)
