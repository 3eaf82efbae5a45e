"""Resolves entities: which names of the extractions mean one thing (KRAQ paper, section 2; thesis, chapter 3).

Names with one normalised string are one. Beyond that, a wrong merge costs more than a missed one: it puts two things
into one node, and no later step can take them apart. Similarity alone is no proof: of the pairs in real extractions
whose spelling is 0.92 alike or more, most are two things ("Prussian", "Russian"; "Las Vegas", "Last Vegas"). So two
names merge unasked only where what differs does not tell things apart: `names.skeletons` (accents, spaces, hyphens),
and, from the threshold on, `names.differ_by_a_slip` (one letter in a proper name of three words or more). The other
pairs with at least `ResolveSettings.similarity` are doubtful candidates, which only a confirmation merges; so are
a single word in which one longer name ends, and acronyms, but for those that a text introduces ("Universidad de Buenos
Aires (UBA)"). Names that differ in a number, a roman numeral or a word such
as "north" or "junior" are never the same.

The two steps, `propose_merges` and `resolve_entities`, are apart so that a caller may ask a model in between.
"""

import itertools
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from rapidfuzz import fuzz, process

from kraq_dspy.config import ResolveSettings
from kraq_dspy.graph.names import (
    differ_by_a_slip,
    distinguishing_marks,
    initials,
    is_capitalised,
    looks_like_acronym,
    normalise_name,
    skeletons,
)
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Merge, content_id

logger = logging.getLogger(__name__)

METHODS = ("normalised", "lexical", "acronym", "semantic", "confirmed")  # of `records.Merge`, the surest first
_BLOCK = 120  # names; a token or n-gram that more names share says little
_MEANINGS = 3  # names that an acronym may stand for
_LINKING = frozenset(("of", "and", "by", "to", "for", "via", "the", "in", "on", "at", "from", "with", "de"))
_SMALL_BLOCK = 16  # names
_EDGE = 5  # characters at the beginning and the end of a name that make a block
_TILE = 4096  # rows and columns of a similarity matrix held at once: 64 MiB
_ENCODED = 4096  # names embedded at once


@dataclass(frozen=True, slots=True)
class NameCount:
    """A distinct spelling, how often the extractions have it, and its most frequent type ("" where unknown)."""

    name: str
    type: str
    count: int


@dataclass(frozen=True, slots=True)
class MergeCandidate:
    """Two names (the most frequent spellings of their keys, in alphabetical order of the keys) that may be one.

    `method` is "lexical", "semantic", "acronym" or "part" (one word of a longer name). `certain` ones may be merged
    unasked. `similarity` is in [0, 1]: of the spellings, or for "semantic" the cosine.
    """

    first: str
    second: str
    method: str
    similarity: float
    certain: bool


@dataclass(frozen=True)
class Resolution:
    """Which names are one entity. `canonical_keys` maps a normalised name to the key of the name that was kept;
    `names` maps that key to all its spellings, the kept one first, the others by frequency.
    """

    canonical_keys: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()

    def key_of(self, name: str) -> str:
        """The canonical key of any name, also of one that was not resolved."""
        key = normalise_name(name)
        return self.canonical_keys.get(key, key)

    def entity_id(self, name: str) -> str:
        return entity_id_of(self.key_of(name))


def entity_id_of(key: str) -> str:
    return content_id("entity", key)


def majority(counts: Mapping[str, int]) -> str:
    """The most frequent; ties alphabetically; "" of nothing."""
    return min(counts, key=lambda value: (-counts[value], value), default="")


def by_preference(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Spellings by how often they occur, then the longer, then the alphabetically first: the first one is kept."""
    return tuple(sorted(counts, key=lambda name: (-counts[name], -len(name), name)))


def propose_merges(
    names: Iterable[NameCount],
    settings: ResolveSettings,
    embedder: Embedder | None = None,
    introduced: Collection[tuple[str, str]] = (),
) -> list[MergeCandidate]:
    """Pairs of names that may be one thing, beyond those with one normalised string; certain ones first.

    `introduced` are acronyms with their names, as `names.introduced_acronyms` gives them: these are certain.
    With `embedder` and `settings.semantic`, names near to each other by meaning are among the doubtful ones. The order
    of `names` does not matter. Memory grows with the number of names, not with that of their pairs.
    """
    groups = _groups(names)
    candidates: dict[tuple[str, str], MergeCandidate] = {}
    keys = sorted(groups)
    certain = _certain(keys, groups)
    lexical = _spelled_alike(keys, groups, settings.similarity)
    semantic = (
        _meant_alike(keys, groups, settings.similarity, embedder) if embedder is not None and settings.semantic else ()
    )
    for candidate in itertools.chain(
        certain, lexical, _acronyms(keys, groups, introduced), _parts(keys, groups), semantic
    ):
        candidates.setdefault((candidate.first, candidate.second), candidate)
    logger.info("%d names, %d pairs that may be one thing", len(keys), len(candidates))
    return sorted(candidates.values(), key=lambda c: (not c.certain, -c.similarity, c.first, c.second))


def resolve_entities(names: Iterable[NameCount], accepted: Iterable[MergeCandidate] = ()) -> Resolution:
    """Merge the spellings of one normalised string, and the accepted pairs with all that follows from them.

    The kept name is the most frequent spelling; ties go to the longer, then to the alphabetically first. A candidate
    that was not certain counts as confirmed. An acronym that was accepted for two names which are not one otherwise is
    merged with neither. Resolving the kept names again changes nothing; the order of the arguments does not matter.
    """
    groups = _groups(names)
    links = _usable(accepted, groups)
    forest = _Forest(groups)
    used = [link for link in links if forest.unite(normalise_name(link.first), normalise_name(link.second))]
    members: dict[str, list[str]] = defaultdict(list)
    for key in sorted(groups):
        members[forest.root(key)].append(key)
    canonical_keys: dict[str, str] = {}
    spellings: dict[str, tuple[str, ...]] = {}
    merges: list[Merge] = []
    how = _how(used)
    for keys in members.values():
        counts = Counter({name: count for key in keys for name, count in groups[key].counts.items()})
        ordered = by_preference(counts)
        kept = ordered[0]
        kept_key = normalise_name(kept)
        spellings[kept_key] = ordered
        for key in keys:
            canonical_keys[key] = kept_key
        entity_id = entity_id_of(kept_key)
        for name in ordered[1:]:
            method, similarity = how(kept_key, normalise_name(name))
            id = content_id("merge", entity_id, name)
            merges.append(Merge(id, entity_id, kept, name, method, similarity))
    return Resolution(canonical_keys, spellings, tuple(sorted(merges, key=lambda m: (m.kept_name, m.merged_name))))


@dataclass(frozen=True)
class _Group:
    """The spellings of one key."""

    counts: dict[str, int]
    type: str
    name: str  # the preferred spelling


def _groups(names: Iterable[NameCount]) -> dict[str, _Group]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for each in names:
        if not each.name.strip():
            continue
        key = normalise_name(each.name)
        counts[key][each.name] += each.count
        if each.type:
            types[key][each.type] += each.count
    return {
        key: _Group(dict(spelt), majority(types.get(key, {})), by_preference(spelt)[0]) for key, spelt in counts.items()
    }


def _candidate(
    groups: Mapping[str, _Group], a: str, b: str, method: str, similarity: float, *, certain: bool = False
) -> MergeCandidate:
    first, second = sorted((a, b))
    return MergeCandidate(groups[first].name, groups[second].name, method, round(float(similarity), 4), certain)


def _certain(keys: Sequence[str], groups: Mapping[str, _Group]) -> Iterator[MergeCandidate]:
    """Keys with one skeleton, compared in that form: 1.0. Equality cannot chain two different things together."""
    alike: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        for text in skeletons(groups[key].name):
            alike[text].append(key)
    for same in alike.values():
        for a, b in itertools.pairwise(same):
            yield _candidate(groups, a, b, "lexical", 1.0, certain=True)


def _spelled_alike(keys: Sequence[str], groups: Mapping[str, _Group], threshold: float) -> Iterator[MergeCandidate]:
    """Keys with at least `threshold` of their letters in common, compared within blocks, so that 100,000 are feasible.

    A block holds the keys that share a rare word, their first letters or their last letters.
    """
    done: set[tuple[str, str]] = set()
    for block in _blocks(keys):
        for a, b, similarity in _alike_in(block, 100 * threshold):
            if (a, b) in done or distinguishing_marks(a) != distinguishing_marks(b):
                continue
            done.add((a, b))
            names = groups[a].name, groups[b].name
            certain = differ_by_a_slip(a, b) and all(map(is_capitalised, names))
            yield _candidate(groups, a, b, "lexical", similarity / 100, certain=certain)


def _alike_in(block: Sequence[str], cutoff: float) -> Iterator[tuple[str, str, float]]:
    """Pairs of a block with at least `cutoff` percent of their letters in common."""
    if len(block) <= _SMALL_BLOCK:  # most blocks are; a matrix for each would cost more than the comparisons
        for a, b in itertools.combinations(block, 2):
            if similarity := fuzz.ratio(a, b, score_cutoff=cutoff):
                yield a, b, similarity
        return
    similarities = process.cdist(block, block, scorer=fuzz.ratio, score_cutoff=cutoff, dtype=np.float32)
    for row, column in zip(*np.nonzero(np.triu(similarities, 1)), strict=True):
        yield block[row], block[column], float(similarities[row, column])


def _blocks(keys: Sequence[str]) -> Iterator[list[str]]:
    """Sorted lists of two to `_BLOCK` keys; larger ones are split by their first words, or left out."""
    blocks: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in keys:
        letters = key.replace(" ", "")
        marks = {("word", token) for token in key.split()}
        for mark in {*marks, ("begins", letters[:_EDGE]), ("ends", letters[-_EDGE:])}:
            blocks[mark].append(key)
    for (kind, text), block in blocks.items():
        if 2 <= len(block) <= _BLOCK:
            yield block
        elif len(block) > _BLOCK and kind != "word":
            finer: dict[str, list[str]] = defaultdict(list)
            for key in block:
                letters = key.replace(" ", "")
                finer[letters[: 2 * _EDGE] if kind == "begins" else letters[-2 * _EDGE :]].append(key)
            yield from (part for part in finer.values() if 2 <= len(part) <= _BLOCK)
            logger.debug("%d names have %r in common: compared by more letters", len(block), text)


def _acronyms(
    keys: Sequence[str], groups: Mapping[str, _Group], introduced: Collection[tuple[str, str]]
) -> Iterator[MergeCandidate]:
    """Acronyms and the capitalised names that they may stand for; those that many names fit say nothing. Where a text
    introduces an acronym, it stands for nothing else."""
    acronyms = {key.replace(" ", ""): key for key in keys if looks_like_acronym(groups[key].name)}
    expansions: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if is_capitalised(groups[key].name):
            for short in initials(key) & acronyms.keys():
                expansions[short].append(key)
    for short, fitting in sorted(expansions.items()):
        names = [key for key in fitting if (short, key) in introduced] or fitting
        if len(names) <= (_MEANINGS if len(short) > 2 else 1):
            for key in names:
                similarity = fuzz.ratio(acronyms[short], key) / 100
                certain = (short, key) in introduced
                yield _candidate(groups, acronyms[short], key, "acronym", similarity, certain=certain)


def _parts(keys: Sequence[str], groups: Mapping[str, _Group]) -> Iterator[MergeCandidate]:
    """A capitalised word and the one name of two or three words that ends in it: "Scrooge" and "Ebenezer Scrooge"."""
    longer: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        tokens = key.split()
        if len(tokens) > 1:
            for token in {tokens[0], tokens[-1]}:
                longer[token].append(key)
    for key in keys:
        if " " in key or len(longer[key]) != 1 or not is_capitalised(groups[key].name):
            continue
        (whole,) = longer[key]
        short, full = groups[key], groups[whole]
        fits = (
            not (_LINKING & set(whole.split()))
            and re.fullmatch(r"[^\W\d]+(?: [^\W\d]+){1,2}", full.name)
            and is_capitalised(full.name)
        )
        if fits and whole.endswith(key) and short.type == full.type and not distinguishing_marks(whole):
            yield _candidate(groups, key, whole, "part", fuzz.ratio(key, whole) / 100)


def _meant_alike(
    keys: Sequence[str], groups: Mapping[str, _Group], threshold: float, embedder: Embedder
) -> Iterator[MergeCandidate]:
    """Keys whose names' embeddings have a cosine of at least `threshold`: a matrix product, tile by tile."""
    names = [groups[key].name for key in keys]
    if not names:
        return
    vectors = np.concatenate(
        [embedder.encode_passages(names[start : start + _ENCODED]) for start in range(0, len(names), _ENCODED)]
    )
    for top in range(0, len(keys), _TILE):
        for left in range(top, len(keys), _TILE):
            cosines = vectors[top : top + _TILE] @ vectors[left : left + _TILE].T
            for row, column in zip(*np.nonzero(cosines >= threshold), strict=True):
                a, b = keys[top + row], keys[left + column]
                if a < b and distinguishing_marks(a) == distinguishing_marks(b):
                    yield _candidate(groups, a, b, "semantic", min(1.0, float(cosines[row, column])))


def _usable(accepted: Iterable[MergeCandidate], groups: Mapping[str, _Group]) -> list[MergeCandidate]:
    """The accepted candidates about known names, the surest first, without acronyms that mean more than one thing."""
    order = sorted(set(accepted), key=lambda c: (not c.certain, -c.similarity, c.first, c.second, c.method))
    known = [c for c in order if normalise_name(c.first) in groups and normalise_name(c.second) in groups]
    plain = [candidate for candidate in known if candidate.method != "acronym"]
    forest = _Forest(groups)
    for candidate in plain:
        forest.unite(normalise_name(candidate.first), normalise_name(candidate.second))
    meanings: dict[str, set[str]] = defaultdict(set)
    for candidate in known:
        if candidate.method == "acronym":
            short, long = _short_and_long(candidate)
            meanings[short].add(forest.root(long))
    return plain + [c for c in known if c.method == "acronym" and len(meanings[_short_and_long(c)[0]]) == 1]


def _short_and_long(candidate: MergeCandidate) -> tuple[str, str]:
    short, long = sorted((normalise_name(candidate.first), normalise_name(candidate.second)), key=lambda k: (len(k), k))
    return short, long


class _Forest:
    """Disjoint sets of keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._parents = {key: key for key in keys}

    def root(self, key: str) -> str:
        while (parent := self._parents[key]) != key:
            self._parents[key] = key = self._parents[parent]
        return key

    def unite(self, a: str, b: str) -> bool:
        """Whether they were apart."""
        low, high = sorted((self.root(a), self.root(b)))
        self._parents[high] = low
        return low != high


def _how(used: Sequence[MergeCandidate]) -> Callable[[str, str], tuple[str, float]]:
    """Looks up by which method, and how similar, a key came to the kept one: the weakest link of the way to it."""
    links: dict[str, dict[str, MergeCandidate]] = defaultdict(dict)
    for candidate in used:
        a, b = normalise_name(candidate.first), normalise_name(candidate.second)
        links[a][b] = links[b][a] = candidate
    known_ways: dict[str, dict[str, tuple[str, float]]] = {}

    def ways_from(kept: str) -> dict[str, tuple[str, float]]:
        ways = {kept: ("normalised", 1.0)}
        waiting = [kept]
        while waiting:
            key = waiting.pop()
            for other, link in links[key].items():
                if other not in ways:
                    step = (link.method if link.certain else "confirmed", link.similarity)
                    rank = METHODS.index
                    weaker = max(ways[key], step, key=lambda way: (rank(way[0]), -way[1]))
                    ways[other] = weaker
                    waiting.append(other)
        return ways

    def how(kept: str, key: str) -> tuple[str, float]:
        if kept not in known_ways:
            known_ways[kept] = ways_from(kept)
        return known_ways[kept][key]

    return how
