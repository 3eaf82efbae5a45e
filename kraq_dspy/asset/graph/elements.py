"""Chooses what a model is shown of a community: its elements by degree centrality, within a token limit.

KRAQ paper, section 2 and thesis, chapter 3: entities and relationships come highest degree first,
up to the model's input limit. If the elements of a larger community do not fit, the summaries of
its largest sub-communities replace them, bottom-up. We differ in one thing: a description most of
whose words were already shown in the same order is left out, since extractors repeat a sentence for
each element that it names.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kraq_dspy.asset.corpus.tokens import count_tokens, truncate_tokens
from kraq_dspy.records import Claim, Community, Entity, Relationship, Summary

_WORD = re.compile(r"\w+")
_MARK = 2  # tokens of a line beside its text
_REPEATED = 0.6  # share of a description's word triples from which on it counts as said


@dataclass(frozen=True)
class GraphView:
    """The records of a graph by id, for looking communities up."""

    entities: Mapping[str, Entity]
    relationships: Mapping[str, Relationship]
    claims_of: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    """By the id of the entity that they are about."""
    claims_between: Mapping[frozenset[str], Sequence[Claim]] = field(default_factory=dict)
    """By the two entities whose link they are about; the subject has them in `claims_of` too."""

    @classmethod
    def of(
        cls, entities: Iterable[Entity], relationships: Iterable[Relationship], claims: Iterable[Claim] = ()
    ) -> "GraphView":
        by_entity: dict[str, list[Claim]] = {}
        by_pair: dict[frozenset[str], list[Claim]] = {}
        for claim in claims:
            by_entity.setdefault(claim.entity_id, []).append(claim)
            if claim.pair:
                by_pair.setdefault(claim.pair, []).append(claim)
        return cls({e.id: e for e in entities}, {r.id: r for r in relationships}, by_entity, by_pair)


def community_elements(
    community: Community,
    graph: GraphView,
    limit: int,
    summary_of: Callable[[str], Summary | None] = lambda community_id: None,
    community_of: Callable[[str], Community | None] = lambda community_id: None,
) -> list[str]:
    """Lines about `community`, most central first, of at most `limit` tokens together.

    `summary_of` and `community_of` look a child up; children without a summary keep their elements.
    """
    lines = _all_lines(community.entity_ids, community.relationship_ids, graph, limit)
    if lines is not None:
        return lines
    return _fitted(_substituted(community, graph, limit, summary_of, community_of), limit)


@dataclass(frozen=True)
class _Part:
    """A sub-community: its summary, if it has one, and all its lines, if they are not more than fit at all."""

    community: Community
    summary: str | None
    lines: list[str] | None


def _substituted(
    community: Community,
    graph: GraphView,
    limit: int,
    summary_of: Callable[[str], Summary | None],
    community_of: Callable[[str], Community | None],
) -> Iterator[str]:
    """Sub-community by sub-community, the largest replaced by their summaries until the whole fits, then the rest."""
    parts: list[_Part] = []
    for child_id in community.child_ids:
        if (child := community_of(child_id)) is not None:
            summary = summary_of(child_id)
            lines = _all_lines(child.entity_ids, child.relationship_ids, graph, limit)
            parts.append(_Part(child, f"{summary.title}: {summary.text}" if summary else None, lines))

    if not parts:
        yield from _lines(community.entity_ids, community.relationship_ids, graph)
        return

    replaced = _replaced(community, parts, graph, limit)
    for index, part in enumerate(parts):
        if index in replaced and part.summary is not None:
            yield part.summary
        else:
            lines = part.lines
            yield from lines or _lines(part.community.entity_ids, part.community.relationship_ids, graph)
    yield from _lines(*_rest(community, parts), graph, with_endpoints=False)


def _replaced(community: Community, parts: Sequence[_Part], graph: GraphView, limit: int) -> set[int]:
    """Tell which parts their summaries stand for. Those with more lines than fit at all are the
    largest."""
    rest = _all_lines(*_rest(community, parts), graph, limit, with_endpoints=False)
    if rest is None:  # then it does not fit with all of them replaced either
        return set(range(len(parts)))

    sizes = [limit + 1 if part.lines is None else _size(part.lines) for part in parts]
    total, replaced = _size(rest) + sum(sizes), set[int]()
    for index in sorted(range(len(parts)), key=lambda i: (-sizes[i], i)):
        if total <= limit:
            break
        summary = parts[index].summary
        if summary is not None:
            replaced.add(index)
            total += _size([summary]) - sizes[index]
    return replaced


def _rest(community: Community, parts: Iterable[_Part]) -> tuple[list[str], list[str]]:
    """Entities and relationships of the community that are in none of its parts."""
    entities = {entity_id for part in parts for entity_id in part.community.entity_ids}
    links = {relationship_id for part in parts for relationship_id in part.community.relationship_ids}
    return (
        [entity_id for entity_id in community.entity_ids if entity_id not in entities],
        [relationship_id for relationship_id in community.relationship_ids if relationship_id not in links],
    )


def _all_lines(
    entity_ids: Sequence[str],
    relationship_ids: Sequence[str],
    graph: GraphView,
    limit: int,
    *,
    with_endpoints: bool = True,
) -> list[str] | None:
    """The `_lines` of all of them; None if these take more than `limit` tokens, found by the first of them."""
    if _MARK * (len(entity_ids) + len(relationship_ids)) > limit:
        return None

    lines: list[str] = []
    for line in _lines(entity_ids, relationship_ids, graph, with_endpoints=with_endpoints):
        limit -= _size([line])
        if limit < 0:
            return None
        lines.append(line)
    return lines


def _lines(
    entity_ids: Iterable[str], relationship_ids: Iterable[str], graph: GraphView, *, with_endpoints: bool = True
) -> Iterator[str]:
    """Relationships by combined degree, each after the entities that it links and that were not shown yet.

    A claim about a link stands with the first relationship of its two entities; if none is shown, with its subject.
    """
    entities = {entity_id: graph.entities[entity_id] for entity_id in entity_ids}
    links = [graph.relationships[relationship_id] for relationship_id in relationship_ids]

    def degree(entity_id: str) -> int:
        return graph.entities[entity_id].degree

    links.sort(key=lambda link: (-degree(link.source_id) - degree(link.target_id), -link.weight, link.id))
    linked = {frozenset((link.source_id, link.target_id)) for link in links}
    shown_triples: set[tuple[str, ...]] = set()
    shown: set[str] = set()

    def show(entity_id: str) -> Iterator[str]:
        if entity_id in shown or entity_id not in entities:
            return
        shown.add(entity_id)
        entity = entities[entity_id]
        kind = f" ({entity.type})" if entity.type else ""
        own = [claim.statement for claim in graph.claims_of.get(entity_id, ()) if claim.pair not in linked]
        yield _with_description(f"{entity.name}{kind}", [entity.description, *own], shown_triples)

    for link in links:
        if with_endpoints:
            for entity_id in sorted((link.source_id, link.target_id), key=lambda e: (-degree(e), e)):
                yield from show(entity_id)

        source, target = graph.entities[link.source_id].name, graph.entities[link.target_id].name
        pair = frozenset((link.source_id, link.target_id))
        facts = [link.description, *(claim.statement for claim in graph.claims_between.get(pair, ()))]
        yield _with_description(f"{source} | {link.predicate} | {target}", facts, shown_triples)

    for entity_id in sorted(entities, key=lambda e: (-degree(e), e)):
        yield from show(entity_id)


def _with_description(head: str, descriptions: Sequence[str], shown_triples: set[tuple[str, ...]]) -> str:
    """The line of an element; `shown_triples` are the word triples of those before it."""
    new = []
    for text in descriptions:
        triples = _word_triples(text)
        if triples and len(triples - shown_triples) > len(triples) * (1 - _REPEATED):
            new.append(text)
            shown_triples |= triples
    return f"{head}: {' '.join(new)}" if new else head


@lru_cache(maxsize=2**14)  # an element is shown at every level of its communities
def _word_triples(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    if len(words) < 3:
        return frozenset([tuple(words)] if words else [])
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _fitted(lines: Iterable[str], limit: int) -> list[str]:
    fitting: list[str] = []
    left = limit
    for line in lines:
        size = _size([line])
        if size > left:
            if not fitting:
                fitting.append(truncate_tokens(line, limit))
            break
        fitting.append(line)
        left -= size
    return fitting


def _size(lines: Sequence[str]) -> int:
    """Tokens of the lines as a model sees them: each costs a mark and a line break beside its text."""
    return sum(_tokens(line) + _MARK for line in lines)


_tokens = lru_cache(maxsize=2**14)(count_tokens)
